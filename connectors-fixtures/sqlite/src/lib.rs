//! `materialize-sqlite`: the component. What it does is in `sqlite-connector`,
//! which other components may wrap; exports of two could not be linked into one.

tidegate_boilerplate::export!(sqlite_connector::SqliteConnector);
