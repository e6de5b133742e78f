//! `materialize-webhook`: the component. What it does is in `webhook-connector`,
//! which other components may wrap; exports of two could not be linked into one.

tidegate_boilerplate::export!(webhook_connector::WebhookConnector);
