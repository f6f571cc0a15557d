// Writing objects: what the recordings do not cover, or cover only beside running controllers.
#include "tests/unit/testing/api_rig.hpp"

namespace kubeopera::testing_rig {
namespace {

TEST(ApiWrite, AStatusPatchChangesTheStatusAlone) {
  api_rig rig;
  ASSERT_EQ(rig.post(deployments, deployment("web")).status, 201);
  auto r = rig.strategic(deployments + "/web/status",
                         R"({"metadata":{"labels":{"ignored":"yes"}},"spec":{"replicas":9},"status":{"replicas":1,)"
                         R"("conditions":[{"type":"Custom","status":"True"}]}})");
  ASSERT_EQ(r.status, 200) << r.text;
  EXPECT_EQ(r.number({"spec", "replicas"}), 1);
  EXPECT_EQ(r.number({"status", "replicas"}), 1);
  EXPECT_EQ(r.number({"metadata", "generation"}), 1);
  EXPECT_EQ(json::find(r.body, {"metadata", "labels"}), nullptr);
  const auto* entries = json::get_array(r.body, {"metadata", "managedFields"});
  ASSERT_TRUE(entries && entries->size() == 2);
  // A second condition merges by its type, in front of the first.
  r = rig.strategic(deployments + "/web/status", R"({"status":{"conditions":[{"type":"Other","status":"False"}]}})");
  const auto* conditions = json::get_array(r.body, {"status", "conditions"});
  ASSERT_TRUE(conditions && conditions->size() == 2);
  EXPECT_EQ(json::get_string((*conditions)[0].get_object(), {"type"}), "Other");
}

TEST(ApiWrite, GenerationCountsTheSpecification) {
  api_rig rig;
  rig.post(deployments, deployment("web"));
  EXPECT_EQ(rig.merge(deployments + "/web", R"({"metadata":{"labels":{"a":"b"}}})").number({"metadata", "generation"}), 1);
  EXPECT_EQ(rig.merge(deployments + "/web", R"({"spec":{"replicas":3}})").number({"metadata", "generation"}), 2);
  EXPECT_EQ(rig.merge(deployments + "/web", R"({"spec":{"replicas":3}})").number({"metadata", "generation"}), 2);
}

TEST(ApiWrite, QuantitiesAreWrittenAsGoWritesThem) {
  api_rig rig;
  auto with = [](const std::string& q) {
    return R"({"metadata":{"name":"q)" + std::to_string(q.size()) + R"("},"spec":{"hard":{"memory":")" + q + R"("}}})";
  };
  struct row {
    const char *given, *kept;
  };
  for (row r : {row{"1000m", "1"},
                {"0.5", "500m"},
                {"1024Mi", "1Gi"},
                {"1.5Gi", "1536Mi"},
                {"2000", "2k"},
                {"0.1Gi", "107374182400m"},
                {"128974848", "128974848"},
                {"1e3", "1e3"},
                {"12Ki", "12Ki"},
                {"0", "0"}}) {
    api_rig fresh;
    EXPECT_EQ(fresh.post("/api/v1/namespaces/default/resourcequotas", with(r.given)).at({"spec", "hard", "memory"}), r.kept)
        << r.given;
  }
  EXPECT_EQ(rig.post("/api/v1/namespaces/default/resourcequotas", with("lots")).status, 400);
}

TEST(ApiWrite, ApplyGivesUpFieldsAndForcesConflicts) {
  api_rig rig;
  ASSERT_EQ(rig.apply(deployments + "/web", "flux", deployment("web", 2)).status, 201);
  rig.merge(deployments + "/web?fieldManager=hpa", R"({"spec":{"replicas":5}})");
  auto clash = rig.apply(deployments + "/web", "flux", deployment("web", 2));
  EXPECT_EQ(clash.status, 409);
  EXPECT_EQ(clash.at({"message"}), "Apply failed with 1 conflict: conflict with \"hpa\" using apps/v1: .spec.replicas");
  EXPECT_EQ(rig.apply(deployments + "/web", "flux", deployment("web", 2), true).number({"spec", "replicas"}), 2);
  // A field that its only owner leaves out goes, and the default comes back.
  std::string without = deployment("web", 2);
  without.replace(without.find("\"replicas\":2,"), 13, "");
  EXPECT_EQ(rig.apply(deployments + "/web", "flux", without).number({"spec", "replicas"}), 1);
}

TEST(ApiWrite, ApplyNamesEveryConflict) {
  api_rig rig;
  rig.apply(maps + "/m", "one", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1","b":"1"}})");
  auto r =
      rig.apply(maps + "/m", "two", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"2","b":"2"}})");
  EXPECT_EQ(r.status, 409);
  EXPECT_EQ(r.at({"message"}), "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b");
}

TEST(ApiWrite, ApplyRefusesWhatTheSchemaDoesNotKnow) {
  api_rig rig;
  std::string body = deployment("web");
  body.replace(body.find("\"replicas\""), 10, "\"replicaz\"");
  auto r = rig.apply(deployments + "/web", "flux", body);
  EXPECT_EQ(r.status, 500);
  EXPECT_NE(r.at({"message"}).find(".spec.replicaz: field not declared in schema"), std::string::npos) << r.text;
}

TEST(ApiWrite, ServicesGetAddressesAndDefaults) {
  api_rig rig;
  auto a = rig.post("/api/v1/namespaces/default/services",
                    R"({"metadata":{"name":"a"},"spec":{"selector":{"x":"y"},"ports":[{"port":80}]}})");
  auto b = rig.post("/api/v1/namespaces/default/services",
                    R"({"metadata":{"name":"b"},"spec":{"type":"NodePort","ports":[{"port":80,"targetPort":"http"}]}})");
  ASSERT_EQ(a.status, 201) << a.text;
  ASSERT_EQ(b.status, 201) << b.text;
  EXPECT_NE(a.at({"spec", "clusterIP"}), b.at({"spec", "clusterIP"}));
  EXPECT_EQ(a.at({"spec", "type"}), "ClusterIP");
  EXPECT_EQ(json::find_pointer(json::value(a.body), "/spec/ports/0/targetPort")->get_int64(), 80);
  EXPECT_EQ(json::find_pointer(json::value(a.body), "/spec/ports/0/protocol")->get_string(), "TCP");
  EXPECT_GE(json::find_pointer(json::value(b.body), "/spec/ports/0/nodePort")->get_int64(), 30000);
  EXPECT_EQ(rig.merge("/api/v1/namespaces/default/services/a", R"({"spec":{"clusterIP":"10.96.9.9"}})").status, 422);
}

TEST(ApiWrite, ManifestsThatAreWrongSayWhere) {
  api_rig rig;
  struct row {
    const char *path, *body, *field;
  };
  const row rows[] = {
      {"/apis/networking.k8s.io/v1/namespaces/default/ingresses",
       R"({"metadata":{"name":"i"},"spec":{"rules":[{"host":"A_b","http":{"paths":[{"path":"x","pathType":"Prefix","backend":{}}]}}]}})",
       "spec.rules[0].http.paths[0].path"},
      {"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
       R"({"metadata":{"name":"h"},"spec":{"minReplicas":5,"maxReplicas":2,"scaleTargetRef":{"kind":"Deployment","name":"a"}}})",
       "spec.maxReplicas"},
      {"/apis/policy/v1/namespaces/default/poddisruptionbudgets",
       R"({"metadata":{"name":"p"},"spec":{"minAvailable":1,"maxUnavailable":1}})", "spec"},
      {"/apis/batch/v1/namespaces/default/jobs",
       R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"x"}]}}}})",
       "spec.template.spec.restartPolicy"},
      {"/api/v1/namespaces/default/pods",
       R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"x","volumeMounts":[{"name":"v","mountPath":"/v"}]}]}})",
       "spec.containers[0].volumeMounts[0].name"},
      {"/api/v1/namespaces/default/pods",
       R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}]}})",
       "spec.containers[0].resources.requests"},
      {"/api/v1/namespaces/default/services", R"({"metadata":{"name":"9a"},"spec":{"ports":[{"port":80}]}})", "metadata.name"},
      {"/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"l","labels":{"a":"not ok"}}})", "metadata.labels"},
  };
  for (const row& r : rows) {
    auto a = rig.post(r.path, r.body);
    EXPECT_EQ(a.status, 422) << r.body << a.text;
    const auto* causes = json::get_array(a.body, {"details", "causes"});
    bool found = false;
    for (std::size_t i = 0; causes && i < causes->size(); ++i) {
      found = found || json::get_string((*causes)[i].get_object(), {"field"}) == r.field;
    }
    EXPECT_TRUE(found) << r.field << " is not named in " << a.text;
  }
}

TEST(ApiWrite, FinalizersHoldAndPodsGetTheirGrace) {
  api_rig rig;
  rig.post(maps, R"({"metadata":{"name":"m","finalizers":["a.example/b"]}})");
  EXPECT_FALSE(rig.remove(maps + "/m").at({"metadata", "deletionTimestamp"}).empty());
  EXPECT_EQ(rig.get(maps + "/m").status, 200);
  EXPECT_EQ(rig.merge(maps + "/m", R"({"metadata":{"finalizers":[]}})").status, 200);
  EXPECT_EQ(rig.get(maps + "/m").status, 404);
  const std::string pods = "/api/v1/namespaces/default/pods";
  ASSERT_EQ(rig.post(pods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"x"}]}})").status, 201);
  ASSERT_EQ(rig.post(pods + "/p/binding", R"({"target":{"name":"node-0"}})").status, 201);
  EXPECT_EQ(rig.get(pods + "/p").at({"spec", "nodeName"}), "node-0");
  auto going = rig.remove(pods + "/p");
  EXPECT_EQ(going.number({"metadata", "deletionGracePeriodSeconds"}), 30);
  EXPECT_EQ(rig.get(pods + "/p").status, 200);
  EXPECT_EQ(rig.remove(pods + "/p", R"({"gracePeriodSeconds":0})").status, 200);
  EXPECT_EQ(rig.get(pods + "/p").status, 404);
}

TEST(ApiWrite, TwoVersionsOfACustomKindShareTheirObjects) {
  api_rig rig;
  auto version = [](const std::string& name, bool storage) {
    return R"({"name":")" + name + R"(","served":true,"storage":)" + (storage ? "true" : "false") +
           R"(,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}}})";
  };
  auto crd = rig.post(
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      R"({"metadata":{"name":"things.x.example"},"spec":{"group":"x.example","scope":"Cluster","names":{"plural":"things",)"
      R"("kind":"Thing"},"versions":[)" +
          version("v1", true) + "," + version("v2", false) + "]}}");
  ASSERT_EQ(crd.status, 201) << crd.text;
  EXPECT_EQ(rig.post("/apis/x.example/v1/things",
                     R"({"apiVersion":"x.example/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"n":1}})")
                .status,
            201);
  EXPECT_EQ(rig.get("/apis/x.example/v2/things/t").at({"apiVersion"}), "x.example/v2");
  EXPECT_EQ(rig.remove("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.x.example").status, 200);
  EXPECT_EQ(rig.get("/apis/x.example/v1/things/t").status, 404);
}

TEST(ApiWrite, DryRunChangesNothing) {
  api_rig rig;
  rig.post(maps, R"({"metadata":{"name":"m"},"data":{"a":"1"}})");
  auto before = rig.server.resource_version();
  EXPECT_EQ(rig.merge(maps + "/m?dryRun=All", R"({"data":{"a":"2"}})").at({"data", "a"}), "2");
  EXPECT_EQ(rig.remove(maps + "/m?dryRun=All").status, 200);
  EXPECT_EQ(rig.apply(maps + "/n?dryRun=All", "x", "").status, 422);
  EXPECT_EQ(rig.get(maps + "/m").at({"data", "a"}), "1");
  EXPECT_EQ(rig.server.resource_version(), before);
}

}  // namespace
}  // namespace kubeopera::testing_rig
