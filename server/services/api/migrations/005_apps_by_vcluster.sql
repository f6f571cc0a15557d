-- What lives in a vCluster, by name: asked for by its deletion and by what clears up after creates that died.
create index apps_by_vcluster on apps (vcluster, name);
