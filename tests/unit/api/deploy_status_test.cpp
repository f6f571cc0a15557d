// The judge of deploy-status, fact by fact.
#include "server/services/api/deploy_status.hpp"

#include <kubeopera/json/read.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::api;

namespace {

json::object parse(std::string_view text) { return json::read_object(text).value(); }

class judge_test : public testing::Test {
 protected:
  judge_test() {
    app.id = "0190a3b4-0000-7000-8000-000000000000";
    app.name = "web";
    app.host = "web-shop.apps.example.com";
    app.spec.name = "web";
    app.spec.replicas = 2;
    app.revision = 3;
    app.updated_at = parse_rfc3339("2026-11-30T10:00:00Z").value();
    seen.now = app.updated_at + std::chrono::seconds(5);
    seen.resource_read = true;
  }
  void resource(int revision) {
    seen.resource = parse(
        R"({"metadata":{"name":"web-1"},"status":{"revision":)" + std::to_string(revision) +
        R"(,"commit":"c3","template_hash":"h3","conditions":[{"type":"Reconciling","status":"True","reason":"WaitingForFlux","message":"m"}]}})");
  }
  void kustomization(std::string applied, std::string ready = "True", std::string reason = "ReconciliationSucceeded",
                     std::string attempted = "") {
    if (attempted.empty()) attempted = applied;
    seen.kustomization =
        parse(R"({"kind":"Kustomization","status":{"lastAppliedRevision":"main@sha1:)" + applied +
              R"(","lastAttemptedRevision":"main@sha1:)" + attempted + R"(","conditions":[{"type":"Ready","status":")" + ready +
              R"(","reason":")" + reason + R"(","message":"flux says"}]}})");
  }
  void deployment(int revision, int want, int updated, int available, int replicas,
                  std::string progressing = "ReplicaSetUpdated") {
    auto n = [](int v) { return std::to_string(v); };
    seen.deployment = parse(
        R"({"metadata":{"generation":4,"annotations":{"kubeopera.io/revision":")" + n(revision) + R"("}},"spec":{"replicas":)" +
        n(want) + R"(,"progressDeadlineSeconds":600},"status":{"observedGeneration":4,"replicas":)" + n(replicas) +
        R"(,"updatedReplicas":)" + n(updated) + R"(,"availableReplicas":)" + n(available) + R"(,"readyReplicas":)" +
        n(available) + R"(,"conditions":[{"type":"Progressing","status":"True","reason":")" + progressing +
        R"(","message":"words","lastUpdateTime":"2026-11-30T10:00:01Z","lastTransitionTime":"2026-11-30T10:00:01Z"}]}})");
  }
  void pod(std::string hash, std::string container_status) {
    seen.pods.push_back(parse(R"({"metadata":{"name":"p","annotations":{"kubeopera.io/template-hash":")" + hash +
                              R"("}},"status":{"containerStatuses":[)" + container_status + "]}}"));
  }
  std::string state(int i) { return judge(app, seen).stages[static_cast<std::size_t>(i)].state; }
  std::string cause(int i) { return judge(app, seen).stages[static_cast<std::size_t>(i)].cause.value_or(""); }
  std::string phase() { return judge(app, seen).phase; }
  app_row app;
  observation seen;
};

constexpr const char* pull =
    R"({"name":"c","state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image"}}})";
constexpr const char* crash =
    R"({"name":"c","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}})";
constexpr const char* oom =
    R"({"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}})";

}  // namespace

TEST_F(judge_test, goes_through_the_stages_in_order) {
  EXPECT_EQ(phase(), "pending");
  EXPECT_EQ(cause(0), "WaitingForResource");
  resource(2);
  EXPECT_EQ(phase(), "deploying");
  EXPECT_EQ(cause(0), "WaitingForFlux");
  EXPECT_FALSE(judge(app, seen).commit.has_value());
  resource(3);
  kustomization("c2");
  deployment(2, 2, 2, 2, 2);
  EXPECT_EQ(state(0), "running");
  EXPECT_EQ(state(1), "pending");
  kustomization("c3");
  deployment(3, 2, 1, 2, 3);
  EXPECT_EQ(state(0), "succeeded");
  EXPECT_EQ(state(1), "running");
  deployment(3, 2, 2, 2, 2);
  EXPECT_TRUE(wants_probe(app, seen));
  EXPECT_EQ(state(2), "running");
  EXPECT_FALSE(judge(app, seen).live_url.has_value());
  seen.probe = probe_result{true, 200, "", ""};
  EXPECT_EQ(phase(), "live");
  EXPECT_EQ(judge(app, seen).live_url, "https://web-shop.apps.example.com");
}

TEST_F(judge_test, health_of_the_old_version_is_not_health_of_the_new) {
  resource(3);
  kustomization("c2");
  deployment(2, 2, 2, 2, 2, "NewReplicaSetAvailable");
  seen.probe = probe_result{true, 200, "", ""};
  EXPECT_EQ(phase(), "deploying");
  EXPECT_FALSE(wants_probe(app, seen));
  EXPECT_FALSE(judge(app, seen).live_url.has_value());
}

TEST_F(judge_test, others_commits_do_not_matter) {
  resource(3);
  kustomization("c9", "True");
  deployment(3, 2, 2, 2, 2);
  EXPECT_EQ(state(0), "succeeded");
  kustomization("c9", "Unknown", "Progressing", "c10");
  EXPECT_EQ(state(0), "succeeded");
}

TEST_F(judge_test, refused_manifests_fail_with_fluxs_words) {
  resource(3);
  kustomization("c2", "False", "ReconciliationFailed", "c3");
  deployment(2, 2, 2, 2, 2);
  EXPECT_EQ(state(0), "failed");
  EXPECT_EQ(cause(0), "ReconciliationFailed");
  seen.kustomization["spec"] = json::object{{"suspend", true}};
  EXPECT_EQ(cause(0), "Suspended");
}

TEST_F(judge_test, an_unreachable_git_server_is_named_but_not_final) {
  resource(3);
  kustomization("c2");
  seen.source = parse(
      R"({"kind":"GitRepository","status":{"conditions":[{"type":"Ready","status":"False","reason":"GitOperationFailed","message":"connection refused"}]}})");
  EXPECT_EQ(state(0), "running");
  EXPECT_EQ(cause(0), "GitOperationFailed");
  seen.now = app.updated_at + std::chrono::minutes(10);
  EXPECT_EQ(state(0), "failed");
  EXPECT_EQ(cause(0), "GitOperationFailed");
}

struct failing_pod {
  const char* status;
  const char* cause;
};
class pod_causes : public judge_test, public testing::WithParamInterface<failing_pod> {};
TEST_P(pod_causes, are_named) {
  resource(3);
  kustomization("c3");
  deployment(3, 2, 1, 1, 2);
  pod("h3", GetParam().status);
  EXPECT_EQ(state(1), "failed");
  EXPECT_EQ(cause(1), GetParam().cause);
  EXPECT_TRUE(judge(app, seen).stages[1].hint.has_value());
}
INSTANTIATE_TEST_SUITE_P(
    all, pod_causes,
    testing::Values(
        failing_pod{pull, "ImagePullBackOff"}, failing_pod{crash, "CrashLoopBackOff"}, failing_pod{oom, "OOMKilled"},
        failing_pod{
            R"({"name":"c","state":{"waiting":{"reason":"CreateContainerConfigError","message":"secret \"x\" not found"}}})",
            "CreateContainerConfigError"},
        failing_pod{R"({"name":"c","state":{"waiting":{"reason":"InvalidImageName","message":"m"}}})", "InvalidImageName"}));

TEST_F(judge_test, pods_of_an_older_template_are_not_blamed) {
  resource(3);
  kustomization("c3");
  deployment(3, 2, 1, 1, 2);
  pod("h2", crash);
  EXPECT_EQ(state(1), "running");
  EXPECT_EQ(cause(1), "");
}

TEST_F(judge_test, unschedulable_quota_and_probes) {
  resource(3);
  kustomization("c3");
  deployment(3, 2, 1, 0, 1);
  auto waiting = parse(
      R"({"metadata":{"name":"p","annotations":{"kubeopera.io/template-hash":"h3"}},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1 nodes are available"}]}})");
  seen.pods = {waiting};
  EXPECT_EQ(cause(1), "Unschedulable");
  seen.pods.clear();
  pod("h3", R"({"name":"c","state":{"running":{}}})");
  seen.events = {parse(
      R"({"reason":"Unhealthy","message":"Readiness probe failed: HTTP probe failed with statuscode: 500","involvedObject":{"name":"p"}})")};
  EXPECT_EQ(state(1), "running");
  EXPECT_EQ(cause(1), "ProbeFailed");
  seen.deployment["status"].as_object()["conditions"] =
      json::read(
          R"([{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"pods \"web-1\" is forbidden: exceeded quota: q"}])")
          .value();
  EXPECT_EQ(cause(1), "QuotaExceeded");
}

TEST_F(judge_test, deadline_of_the_deployment_fails_the_stage) {
  resource(3);
  kustomization("c3");
  deployment(3, 2, 1, 1, 2, "ProgressDeadlineExceeded");
  EXPECT_EQ(state(1), "failed");
  EXPECT_EQ(cause(1), "ProgressDeadlineExceeded");
}

TEST_F(judge_test, stopped_and_paused_say_so) {
  resource(3);
  kustomization("c3");
  app.spec.stopped = true;
  deployment(3, 0, 0, 0, 0);
  EXPECT_EQ(phase(), "stopped");
  EXPECT_EQ(state(2), "skipped");
  EXPECT_FALSE(wants_probe(app, seen));
  app.spec.stopped = false;
  app.spec.paused = true;
  deployment(3, 2, 0, 2, 2);
  EXPECT_EQ(phase(), "paused");
  EXPECT_EQ(cause(1), "Paused");
}

TEST_F(judge_test, reachability_causes_and_deadline) {
  resource(3);
  kustomization("c3");
  deployment(3, 2, 2, 2, 2);
  seen.probe = probe_result{false, 0, "TlsFailed", "certificate has expired"};
  EXPECT_EQ(state(2), "running");
  EXPECT_EQ(cause(2), "TlsFailed");
  seen.now = app.updated_at + std::chrono::minutes(6);
  EXPECT_EQ(state(2), "failed");
  EXPECT_EQ(phase(), "failed");
}

TEST_F(judge_test, clusters_that_do_not_answer_are_said_not_hidden) {
  seen.resource_read = false;
  seen.host_error = error(errc::unavailable, "ConnectFailed", "connection refused");
  EXPECT_EQ(cause(0), "HostClusterUnavailable");
  seen.resource_read = true;
  resource(3);
  seen.vcluster_error = error(errc::unavailable, "VClusterNotReady", "no kubeconfig yet");
  EXPECT_EQ(cause(0), "VClusterNotReady");
  app.deleting = true;
  EXPECT_EQ(phase(), "deleting");
}
