//! `materialize-postgres`: the component. What it does is in `postgres-connector`,
//! which its native tests link.

tidegate_boilerplate::export!(postgres_connector::PostgresConnector);
