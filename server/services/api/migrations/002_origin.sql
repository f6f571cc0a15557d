-- Where a row's present state comes from: the span of the request, and for vClusters who asked.
alter table apps add column traceparent text not null default '';
alter table app_revisions add column traceparent text not null default '';
alter table vclusters add column actor text not null default '';
alter table vclusters add column request_id text not null default '';
alter table vclusters add column traceparent text not null default '';
