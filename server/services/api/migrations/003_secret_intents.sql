-- Creates that are writing Secret values into a vCluster before their app has a row. One at a time for a name; gone with the
-- transaction that makes the app. What a create that failed or died leaves here is taken over and cleaned up.
create table secret_intents (
  vcluster text not null,
  app      text not null,
  holder   uuid not null,
  taken_at timestamptz not null default now(),
  primary key (vcluster, app)
);
