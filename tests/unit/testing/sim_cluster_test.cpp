// The controllers at work on an in-process API server.
#include "tests/unit/testing/sim_rig.hpp"

using namespace kubeopera;
using namespace kubeopera::testing_rig;
using namespace std::chrono_literals;

namespace {

bool rolled_out(rig& r, const std::string& name, int replicas, const std::string& revision) {
  auto d = r.get(kube::types::deployments(), "default", name);
  return d && kube::annotation_of(*d, "deployment.kubernetes.io/revision") == revision &&
         json::get_int(*d, {"status", "observedGeneration"}) == kube::generation_of(*d) &&
         json::get_int(*d, {"status", "updatedReplicas"}) == replicas && json::get_int(*d, {"status", "replicas"}) == replicas &&
         json::get_int(*d, {"status", "availableReplicas"}) == replicas;
}

std::string waiting_reason(rig& r) {
  for (const auto& p : r.list(kube::types::pods(), "default")) {
    const auto* all = json::get_array(p, {"status", "containerStatuses"});
    if (!all || all->empty()) continue;
    return std::string(json::get_string(all->front().as_object(), {"state", "waiting", "reason"}));
  }
  return {};
}

bool has_event(rig& r, std::string_view reason) {
  for (const auto& e : r.list(kube::types::events(), "default")) {
    if (json::get_string(e, {"reason"}) == reason) return true;
  }
  return false;
}

}  // namespace

TEST(sim_cluster, a_deployment_becomes_ready_pods_quickly) {
  rig r;
  auto began = std::chrono::steady_clock::now();
  r.create(kube::types::deployments(), deployment("web", "nginx:1.27", 3));
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 3, "1"); }));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 2s);
  auto pods = r.list(kube::types::pods(), "default");
  ASSERT_EQ(pods.size(), 3u);
  for (const auto& p : pods) {
    EXPECT_EQ(json::get_string(p, {"status", "phase"}), "Running");
    EXPECT_EQ(json::get_string(p, {"spec", "nodeName"}), "node-0");
    EXPECT_TRUE(kube::condition_true(p, "Ready"));
  }
}

TEST(sim_cluster, an_update_replaces_pods_and_going_back_reuses_the_replica_set) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "nginx:1.27", 2));
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 2, "1"); }));
  r.patch(kube::types::deployments(), "default", "web",
          R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx:1.28"}]}}}})");
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 2, "2"); }));
  EXPECT_EQ(r.list(kube::types::replica_sets(), "default").size(), 2u);
  r.patch(kube::types::deployments(), "default", "web",
          R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx:1.27"}]}}}})");
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 2, "3"); }));
  auto sets = r.list(kube::types::replica_sets(), "default");
  ASSERT_EQ(sets.size(), 2u);
  bool history = false;
  for (const auto& s : sets) history = history || kube::annotation_of(s, "deployment.kubernetes.io/revision-history") == "1";
  EXPECT_TRUE(history);
}

TEST(sim_cluster, a_paused_deployment_waits_and_says_so) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "nginx:1.27", 1));
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "1"); }));
  r.patch(kube::types::deployments(), "default", "web",
          R"({"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"c","image":"nginx:1.28"}]}}}})");
  ASSERT_TRUE(r.eventually([&] {
    auto d = r.get(kube::types::deployments(), "default", "web");
    const auto* c = kube::find_condition(*d, "Progressing");
    return c && json::get_string(*c, {"reason"}) == "DeploymentPaused";
  }));
  EXPECT_EQ(r.list(kube::types::replica_sets(), "default").size(), 1u);
  r.patch(kube::types::deployments(), "default", "web", R"({"spec":{"paused":false}})");
  EXPECT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "2"); }));
}

TEST(sim_cluster, scaling_to_nothing_leaves_nothing) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "nginx:1.27", 2));
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 2, "1"); }));
  r.patch(kube::types::deployments(), "default", "web", R"({"spec":{"replicas":0}})");
  ASSERT_TRUE(r.eventually([&] { return r.list(kube::types::pods(), "default").empty(); }));
  EXPECT_TRUE(r.eventually([&] { return rolled_out(r, "web", 0, "1"); }));
}

TEST(sim_cluster, old_replica_sets_beyond_the_limit_are_removed) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "nginx:0", 1));
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "1"); }));
  r.patch(kube::types::deployments(), "default", "web", R"({"spec":{"revisionHistoryLimit":1}})");
  for (int i = 1; i <= 3; ++i) {
    r.patch(kube::types::deployments(), "default", "web",
            R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx:)" + std::to_string(i) + R"("}]}}}})");
    ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, std::to_string(i + 1)); }));
  }
  EXPECT_TRUE(r.eventually([&] { return r.list(kube::types::replica_sets(), "default").size() == 2; }));
}

TEST(sim_cluster, an_image_that_cannot_be_pulled_shows_the_cause) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "registry.invalid/shop/web:1", 1));
  ASSERT_TRUE(r.eventually([&] { return waiting_reason(r) == "ImagePullBackOff"; }));
  EXPECT_TRUE(r.eventually([&] { return has_event(r, "Failed") && has_event(r, "BackOff"); }));
}

TEST(sim_cluster, a_crashing_container_loops_and_counts) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "crash:1", 1));
  ASSERT_TRUE(r.eventually([&] { return waiting_reason(r) == "CrashLoopBackOff"; }));
  auto pod = r.list(kube::types::pods(), "default").at(0);
  const auto& s = json::get_array(pod, {"status", "containerStatuses"})->front().as_object();
  EXPECT_EQ(json::get_int(s, {"lastState", "terminated", "exitCode"}), 1);
  EXPECT_GE(json::get_int(s, {"restartCount"}), 1);
  auto d = r.get(kube::types::deployments(), "default", "web");
  EXPECT_FALSE(kube::condition_true(*d, "Available"));
}

TEST(sim_cluster, out_of_memory_is_137) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "oom:1", 1));
  ASSERT_TRUE(r.eventually([&] { return waiting_reason(r) == "CrashLoopBackOff"; }));
  auto pod = r.list(kube::types::pods(), "default").at(0);
  const auto& s = json::get_array(pod, {"status", "containerStatuses"})->front().as_object();
  EXPECT_EQ(json::get_string(s, {"lastState", "terminated", "reason"}), "OOMKilled");
  EXPECT_EQ(json::get_int(s, {"lastState", "terminated", "exitCode"}), 137);
}

TEST(sim_cluster, a_pod_too_big_for_the_node_stays_pending) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "nginx:1", 1, R"(,"resources":{"requests":{"cpu":"100"}})"));
  ASSERT_TRUE(r.eventually([&] {
    for (const auto& p : r.list(kube::types::pods(), "default")) {
      const auto* c = kube::find_condition(p, "PodScheduled");
      if (c && json::get_string(*c, {"message"}).starts_with("0/1 nodes are available: 1 Insufficient cpu.")) return true;
    }
    return false;
  }));
  EXPECT_TRUE(r.eventually([&] { return has_event(r, "FailedScheduling"); }));
}

TEST(sim_cluster, a_missing_secret_keeps_the_container_from_starting_until_it_is_there) {
  rig r;
  r.create(kube::types::deployments(),
           deployment("web", "nginx:1", 1, R"(,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])"));
  ASSERT_TRUE(r.eventually([&] { return waiting_reason(r) == "CreateContainerConfigError"; }));
  r.create(kube::types::secrets(),
           R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"default"},"stringData":{"k":"v"}})");
  EXPECT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "1"); }));
}

TEST(sim_cluster, an_image_can_be_made_to_fail_and_healed) {
  rig r;
  r.sim->fail("nginx:*", kubeopera::testing::fault_kind::image_pull);
  r.create(kube::types::deployments(), deployment("web", "nginx:1", 1));
  ASSERT_TRUE(r.eventually([&] { return waiting_reason(r) == "ImagePullBackOff"; }));
  r.sim->heal();
  EXPECT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "1"); }));
}

TEST(sim_cluster, deleting_a_deployment_collects_what_it_owned) {
  for (std::string how : {"Background", "Foreground"}) {
    rig r;
    r.create(kube::types::deployments(), deployment("web", "nginx:1", 2));
    ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 2, "1"); }));
    r.remove(kube::types::deployments(), "default", "web", how);
    EXPECT_TRUE(r.eventually([&] {
      return r.list(kube::types::pods(), "default").empty() && r.list(kube::types::replica_sets(), "default").empty() &&
             !r.get(kube::types::deployments(), "default", "web");
    })) << how;
  }
}

TEST(sim_cluster, orphans_stay_and_are_adopted_again) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "nginx:1", 1));
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "1"); }));
  auto pod = std::string(kube::name_of(r.list(kube::types::pods(), "default").at(0)));
  r.remove(kube::types::deployments(), "default", "web", "Orphan");
  ASSERT_TRUE(r.eventually([&] { return !r.get(kube::types::deployments(), "default", "web"); }));
  r.create(kube::types::deployments(), deployment("web", "nginx:1", 1));
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "1"); }));
  auto pods = r.list(kube::types::pods(), "default");
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(kube::name_of(pods[0]), pod);
}

TEST(sim_cluster, a_namespace_takes_everything_with_it) {
  rig r;
  r.create(kube::types::namespaces(), R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}})");
  r.create(kube::types::config_maps(), R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"}})");
  auto text = deployment("web", "nginx:1", 1);
  text.replace(text.find("\"default\""), 9, "\"shop\"");
  r.create(kube::types::deployments(), text);
  ASSERT_TRUE(r.eventually([&] { return r.list(kube::types::pods(), "shop").size() == 1; }));
  r.remove(kube::types::namespaces(), "", "shop");
  EXPECT_TRUE(r.eventually([&] { return !r.get(kube::types::namespaces(), "", "shop"); }));
  EXPECT_TRUE(r.list(kube::types::pods(), "shop").empty());
}

TEST(sim_cluster, services_get_endpoints_of_ready_pods) {
  rig r;
  r.create(
      kube::types::services(),
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"default"},"spec":{"selector":{"app":"web"},"ports":[{"port":80,"targetPort":8080}]}})");
  r.create(kube::types::deployments(), deployment("web", "nginx:1.27", 2));
  ASSERT_TRUE(r.eventually([&] {
    auto e = r.get(kube::types::endpoints(), "default", "web");
    const auto* subsets = e ? json::get_array(*e, {"subsets"}) : nullptr;
    if (!subsets || subsets->empty()) return false;
    const auto* all = json::get_array(subsets->front().as_object(), {"addresses"});
    return all && all->size() == 2;
  }));
  ASSERT_TRUE(r.eventually([&] { return r.sim->backends("default", "web").size() == 2; }));
  EXPECT_EQ(r.sim->backends("default", "web").front().version, "1.27");
}

TEST(sim_cluster, an_autoscaler_raises_to_its_minimum) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "nginx:1.27", 1));
  r.create(kube::types::horizontal_pod_autoscalers(),
           R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"web","namespace":"default"},
               "spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"minReplicas":3,"maxReplicas":5}})");
  EXPECT_TRUE(r.eventually([&] { return rolled_out(r, "web", 3, "1"); }));
}

TEST(sim_cluster, logs_follow_a_container) {
  rig r;
  r.create(kube::types::deployments(), deployment("web", "nginx:1.27", 1));
  ASSERT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "1"); }));
  auto pod = std::string(kube::name_of(r.list(kube::types::pods(), "default").at(0)));
  kube::log_options o;
  o.follow = true;
  o.container = "c";
  auto key = kube::object_key{"default", pod};
  auto stream = r.l.wait(r.client->logs(key, o));
  ASSERT_TRUE(stream);
  auto first = r.l.wait((*stream)->next());
  ASSERT_TRUE(first);
  EXPECT_NE(first->find("msg=listening"), std::string::npos) << *first;
  r.sim->print("default", pod, "hello");
  auto second = r.l.wait((*stream)->next());
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, "hello\n");
}

TEST(sim_cluster, controllers_survive_an_api_server_that_was_away) {
  rig r;
  r.api.faults().set_down(true);
  ASSERT_TRUE(r.eventually([&] { return r.api.faults().down(); }));
  r.api.faults().set_down(false);
  r.create(kube::types::deployments(), deployment("web", "nginx:1.27", 1));
  EXPECT_TRUE(r.eventually([&] { return rolled_out(r, "web", 1, "1"); }));
  r.api.faults().cut_watches();
  r.patch(kube::types::deployments(), "default", "web", R"({"spec":{"replicas":2}})");
  EXPECT_TRUE(r.eventually([&] { return rolled_out(r, "web", 2, "1"); }));
}

TEST(sim_cluster, a_job_runs_to_its_end) {
  rig r;
  r.create(kube::types::jobs(),
           R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"default"},
               "spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"busybox:1"}]}}}})");
  EXPECT_TRUE(r.eventually([&] {
    auto j = r.get(kube::types::jobs(), "default", "j");
    return j && kube::condition_true(*j, "Complete");
  }));
}
