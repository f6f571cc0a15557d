// Identity, faults, watches, admission and the call log.
#include "tests/unit/testing/api_rig.hpp"

#include <kubeopera/crypto/pki.hpp>

#include <thread>

namespace kubeopera::testing_rig {
namespace {

TEST(ApiServer, KnowsWhoCallsByTokenAndByCertificate) {
  testing::api_server_options options;
  options.anonymous = false;
  options.allow = [](const testing::api_access& a) {
    return a.user.name == "dev" && a.verb == "get" && a.resource == "configmaps";
  };
  api_rig rig(options);
  auto ca = crypto::make_ca();
  auto certificate_of = [&](std::string name, std::vector<std::string> groups) {
    return *crypto::pem_to_der(crypto::issue_client(*ca, std::move(name), std::move(groups))->certificate);
  };
  auto as = [&](const std::string& der, const std::string& path) {
    http::request r("GET", path);
    r.client_certificate = der;
    return rig.send(std::move(r)).status;
  };
  std::string root = certificate_of("root", {"system:masters"}), dev = certificate_of("dev", {"devs"});
  EXPECT_EQ(as(root, "/api/v1/nodes"), 200);
  EXPECT_EQ(as(dev, maps + "/kube-root-ca.crt"), 200);
  EXPECT_EQ(as(dev, maps), 403);
  EXPECT_EQ(as(dev, "/apis"), 200);
  EXPECT_EQ(as("", maps), 401);
  EXPECT_EQ(as("garbage", maps), 401);
  rig.server.add_token("t", testing::api_user("dev", {}));
  rig.token = "t";
  EXPECT_EQ(rig.get(maps + "/kube-root-ca.crt").status, 200);
  rig.server.remove_token("t");
  EXPECT_EQ(rig.get(maps + "/kube-root-ca.crt").status, 401);
}

TEST(ApiServer, AServiceAccountTokenIsAnIdentity) {
  api_rig rig;
  auto token = rig.post("/api/v1/namespaces/default/serviceaccounts/default/token",
                        R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}})");
  ASSERT_EQ(token.status, 201) << token.text;
  auto review =
      rig.post("/apis/authentication.k8s.io/v1/tokenreviews", R"({"spec":{"token":")" + token.at({"status", "token"}) + R"("}})");
  EXPECT_EQ(review.at({"status", "user", "username"}), "system:serviceaccount:default:default");
}

TEST(ApiServer, InjectedFaultsHitWhatTheyDescribe) {
  api_rig rig;
  testing::api_fault f;
  f.verb = "list";
  f.resource = "configmaps";
  f.times = 2;
  f.status = 429;
  f.reason = "TooManyRequests";
  f.retry_after = 3;
  rig.server.faults().inject(f);
  EXPECT_EQ(rig.get("/api/v1/namespaces").status, 200);
  auto r = rig.get(maps);
  EXPECT_EQ(r.status, 429);
  EXPECT_EQ(r.headers.get("Retry-After"), "3");
  EXPECT_EQ(r.number({"details", "retryAfterSeconds"}), 3);
  EXPECT_EQ(rig.get(maps).status, 429);
  EXPECT_EQ(rig.get(maps).status, 200);
  rig.server.faults().set_down(true);
  EXPECT_EQ(rig.get(maps).status, 503);
  rig.server.faults().clear();
  EXPECT_EQ(rig.get(maps).status, 200);
}

TEST(ApiServer, CutWatchesEndInTheMiddle) {
  api_rig rig;
  auto cut = rig.get(maps + "?watch=true&resourceVersion=" + std::to_string(rig.server.resource_version()));
  auto kept = rig.get("/api/v1/namespaces?watch=true&resourceVersion=" + std::to_string(rig.server.resource_version()));
  rig.server.faults().cut_watches("configmaps");
  EXPECT_EQ(rig.next(cut), "error WatchCut");
  EXPECT_EQ(rig.next(kept), "error DeadlineExceeded");
}

TEST(ApiServer, AWatchBehindTheHistoryIsTold) {
  testing::api_server_options options;
  options.history = 5;
  api_rig rig(options);
  auto start = std::to_string(rig.server.resource_version());
  auto w = rig.get(maps + "?watch=true&resourceVersion=" + start);
  for (int i = 0; i < 10; ++i) rig.post(maps, R"({"metadata":{"name":"m)" + std::to_string(i) + R"("}})");
  EXPECT_NE(rig.next(w).find("\"code\":410"), std::string::npos);
  EXPECT_EQ(rig.next(w), "");
  auto late = rig.get(maps + "?watch=true&resourceVersion=" + start);
  EXPECT_NE(rig.next(late).find("too old resource version: " + start), std::string::npos);
}

TEST(ApiServer, PagesShowOneMomentWhileOthersWrite) {
  api_rig rig;
  for (const char* n : {"a", "b", "c", "d"})
    rig.post(maps, R"({"metadata":{"name":")" + std::string(n) + R"(","labels":{"p":"1"}}})");
  auto first = rig.get(maps + "?limit=2&labelSelector=p");
  rig.remove(maps + "/c");
  rig.post(maps, R"({"metadata":{"name":"e","labels":{"p":"1"}}})");
  rig.merge(maps + "/d", R"({"data":{"x":"y"}})");
  auto second = rig.get(maps + "?limit=2&labelSelector=p&continue=" + first.at({"metadata", "continue"}));
  const auto* items = json::get_array(second.body, {"items"});
  ASSERT_TRUE(items && items->size() == 2) << second.text;
  EXPECT_EQ(json::get_string((*items)[0].get_object(), {"metadata", "name"}), "c");
  EXPECT_EQ(json::find((*items)[1].get_object(), {"data"}), nullptr);
  EXPECT_EQ(second.at({"metadata", "continue"}), "");
}

TEST(ApiServer, PodSecurityJudgesPods) {
  api_rig rig;
  rig.post("/api/v1/namespaces", R"({"metadata":{"name":"tight","labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})");
  const std::string good =
      R"({"metadata":{"name":"ok"},"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},)"
      R"("containers":[{"name":"c","image":"x","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}})";
  EXPECT_EQ(rig.post("/api/v1/namespaces/tight/pods", good).status, 201);
  std::string bad = good;
  bad.replace(bad.find("\"spec\":{"), 8, "\"spec\":{\"hostNetwork\":true,");
  bad.replace(bad.find("\"ok\""), 4, "\"no\"");
  auto r = rig.post("/api/v1/namespaces/tight/pods", bad);
  EXPECT_EQ(r.status, 403);
  EXPECT_NE(r.at({"message"}).find("host namespaces (hostNetwork=true)"), std::string::npos) << r.text;
}

TEST(ApiServer, QuotasHoldWhenManyCreateAtOnce) {
  api_rig rig;
  rig.post("/api/v1/namespaces/default/resourcequotas", R"({"metadata":{"name":"q"},"spec":{"hard":{"secrets":"10"}}})");
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        auto name = std::to_string(t) + "-" + std::to_string(i);
        if (rig.post("/api/v1/namespaces/default/secrets", R"({"metadata":{"name":")" + name + R"("}})").status == 201) ++made;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(made, 10);
}

TEST(ApiServer, ConcurrentPatchesAllCount) {
  api_rig rig;
  rig.post(maps, R"({"metadata":{"name":"m"},"data":{}})");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        auto key = std::to_string(t) + "." + std::to_string(i);
        rig.merge(maps + "/m", R"({"data":{")" + key + R"(":"x"}})");
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(json::get_object(rig.get(maps + "/m").body, {"data"})->size(), 100u);
}

TEST(ApiServer, RemembersItsCalls) {
  testing::api_server_options options;
  options.call_log = 2;
  api_rig rig(options);
  rig.get("/version");
  rig.get(maps);
  rig.post(maps, "{");
  auto calls = rig.server.calls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].verb, "list");
  EXPECT_EQ(calls[0].user, "admin");
  EXPECT_EQ(calls[1].status, 400);
}

TEST(ApiServer, OpenApiSaysWhatKubectlAsks) {
  api_rig rig;
  auto v3 = rig.get("/openapi/v3/apis/apps/v1");
  ASSERT_EQ(v3.status, 200);
  const auto* patch = json::get_object(v3.body, {"paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", "patch"});
  ASSERT_TRUE(patch);
  EXPECT_NE(json::write(*patch).find("fieldValidation"), std::string::npos);
  auto containers = json::find(v3.body, {"components", "schemas", "PodSpec", "properties", "containers"});
  ASSERT_TRUE(containers);
  EXPECT_EQ(json::get_string(containers->get_object(), {"x-kubernetes-patch-merge-key"}), "name");
}

TEST(ApiServer, BytesThatAreNoDocumentAreRefused) {
  api_rig rig;
  std::string deep(5000, '[');
  for (const std::string& body : {std::string("[]"), std::string("3"), std::string("\"x\""), deep,
                                  std::string("{\"metadata\":3}"), std::string("{\"metadata\":{\"name\":\"\xff\"}}")}) {
    auto r = rig.post(maps, body);
    EXPECT_EQ(r.status, 400) << body.substr(0, 40) << " " << r.text;
  }
  for (const char* path : {"/api/v1/namespaces/default/configmaps/a/b/c/d", "/apis//v1/x", "/api/v1/../secrets"}) {
    EXPECT_GE(rig.get(path).status, 400) << path;
  }
}

}  // namespace
}  // namespace kubeopera::testing_rig
