-- Whether the deletion of an app's resource was asked for. Until then a resource that is not there was never made, and is made
-- first, so that what the app left inside its vCluster is taken away by its controller.
alter table apps add column removal_started boolean not null default false;
