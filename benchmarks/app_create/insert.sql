-- The rows that one created app makes, as one pipelined transaction: what the database alone costs.
\set r random(1, 1000000000000)
\startpipeline
begin;
insert into apps (id, tenant_id, cloudspace_id, vcluster, name, resource, host, spec, revision, actor, request_id, created_at, updated_at) select ('00000000-0000-4000-8000-' || lpad(to_hex(:r::bigint), 12, '0'))::uuid, v.tenant_id, v.cloudspace_id, v.name, 'bench-' || :r::bigint, 'bench-' || :r::bigint, 'bench-' || :r::bigint || '.example.com', '{"name": "bench", "image": "ghcr.io/acme/web", "port": 8080, "replicas": 1, "tls": true, "env": [], "domains": []}', 1, 'bench@example.com', 'bench', now(), now() from vclusters v where v.name = :vcluster and not v.deleting;
insert into host_claims (host, app_id) values ('bench-' || :r::bigint || '.example.com', ('00000000-0000-4000-8000-' || lpad(to_hex(:r::bigint), 12, '0'))::uuid);
insert into app_revisions (app_id, revision, spec, host, actor, request_id) values (('00000000-0000-4000-8000-' || lpad(to_hex(:r::bigint), 12, '0'))::uuid, 1, '{"name": "bench", "image": "ghcr.io/acme/web", "port": 8080, "replicas": 1, "tls": true, "env": [], "domains": []}', 'bench-' || :r::bigint || '.example.com', 'bench@example.com', 'bench');
insert into outbox (id, aggregate, topic, payload, done_at) values (gen_random_uuid(), 'bench-' || :r::bigint, 'app', '{"resource":"bench"}', now());
commit;
\endpipeline
