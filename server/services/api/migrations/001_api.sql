-- CloudSpaces, their vClusters, apps and everything that must be unique about them.
create table cloudspaces (
  id           uuid primary key,
  tenant_id    text not null,
  name         text not null,
  display_name text not null default '',
  quota        jsonb not null default '{}',
  version      bigint not null default 1,
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  deleting     boolean not null default false,
  constraint cloudspace_name_taken unique (tenant_id, name)
);

-- name is the KubeOperaTenant's name on the host cluster: one resource a row.
create table vclusters (
  name         text primary key,
  cloudspace_id uuid not null references cloudspaces (id),
  tenant_id    text not null,
  label        text not null,
  is_default   boolean not null default false,
  quota        jsonb not null default '{}',
  created_at   timestamptz not null default now(),
  deleting     boolean not null default false,
  constraint vcluster_label_taken unique (cloudspace_id, label)
);
create unique index vcluster_one_default on vclusters (cloudspace_id) where is_default;

-- resource is the KubeOperaApp's name: one resource an app, never reused.
create table apps (
  id            uuid primary key,
  tenant_id     text not null,
  cloudspace_id uuid not null references cloudspaces (id),
  vcluster      text not null references vclusters (name),
  name          text not null,
  resource      text not null constraint app_resource_taken unique,
  host          text not null,
  spec          jsonb not null,
  revision      bigint not null default 1,
  version       bigint not null default 1,
  actor         text not null,
  request_id    text not null,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  deleting      boolean not null default false,
  constraint app_name_taken unique (cloudspace_id, name)
);
create index apps_by_tenant on apps (tenant_id, created_at desc, id desc);
create index apps_deleting on apps (id) where deleting;

-- One host, one app; taken in the transaction that makes or moves the app.
create table host_claims (
  host   text constraint host_taken primary key,
  app_id uuid not null references apps (id) on delete cascade
);
create index host_claims_by_app on host_claims (app_id);

-- What every revision was; kept for ever.
create table app_revisions (
  app_id     uuid not null,
  revision   bigint not null,
  spec       jsonb not null,
  host       text not null,
  actor      text not null,
  request_id text not null,
  created_at timestamptz not null default now(),
  primary key (app_id, revision)
);

create table idempotency (
  scope       text not null,
  key         text not null,
  fingerprint text not null,
  locked_until timestamptz not null,
  status      int,
  body        text,
  location    text,
  etag        text,
  created_at  timestamptz not null default now(),
  primary key (scope, key)
);
create index idempotency_by_age on idempotency (created_at);
