//! `materialize-files`: the component. What it does is in `files-connector`, which
//! other components may wrap; exports of two could not be linked into one.

tidegate_boilerplate::export!(files_connector::FilesConnector);
