// Leader election between processes, one of which is frozen while it leads.
#include "candidate.hpp"
#include "cluster_test.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace kubeopera::conformance {
namespace {

using namespace kube;
namespace fs = std::filesystem;

struct leases : cluster_test {
  void SetUp() override {
    cluster_test::SetUp();
    file = fs::temp_directory_path() / unique("kubeopera-conformance-");
    std::ofstream out(file);
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    out << at().kubeconfig();
  }
  void TearDown() override {
    fs::remove(file);
    cluster_test::TearDown();
  }
  // Every fence that the ledger has held from a version on, in order, until it holds `last`.
  std::vector<std::int64_t> fences_until(const std::string& version, std::int64_t last) {
    auto all = wait(collect(api, ns, version, last));
    EXPECT_TRUE(all) << to_string(all.error());
    return all ? *all : std::vector<std::int64_t>();
  }
  fs::path file;

 private:
  static task<std::vector<std::int64_t>> collect(std::shared_ptr<client> api, std::string ns, std::string version,
                                                 std::int64_t last) {
    watch_options options;
    options.resource_version = version;
    options.field_selector = "metadata.name=ledger";
    options.bookmarks = false;
    options.timeout_seconds = 20;
    KUBEOPERA_CO_TRY(auto w, co_await api->watch(types::config_maps(), ns, options));
    std::vector<std::int64_t> out;
    while (out.empty() || out.back() != last) {
      KUBEOPERA_CO_TRY(auto e, co_await w->next());
      if (!e) break;
      out.push_back(std::atoll(std::string(json::get_string(e->obj, {"data", "fence"})).c_str()));
    }
    co_return out;
  }
};

TEST_F(leases, a_frozen_leader_is_replaced_and_writes_nothing_when_it_wakes) {
  auto ledger = make_object(types::config_maps(), {ns, "ledger"});
  ledger["data"] = {{"fence", "-1"}, {"count", "0"}};
  std::string begin(resource_version_of(create(types::config_maps(), ledger)));
  candidate a(file, ns, "a");
  auto first = a.next("leads");
  ASSERT_FALSE(first.empty()) << a.said();
  ASSERT_EQ(a.next("wrote"), first) << a.said();
  candidate b(file, ns, "b");
  ASSERT_TRUE(wait_for(types::leases(), "leader",
                       [](const object& o) { return json::get_string(o, {"spec", "holderIdentity"}) == "a"; }));
  ASSERT_EQ(a.next("wrote"), first);
  EXPECT_EQ(b.said(), "");

  a.freeze();
  auto frozen = std::chrono::steady_clock::now();
  auto second = b.next("leads");
  EXPECT_LT(std::chrono::steady_clock::now() - frozen, 2 * lease_time) << "taken over within two lease periods";
  ASSERT_FALSE(second.empty()) << b.said();
  EXPECT_GT(std::stoll(second), std::stoll(first)) << "a larger fence";
  ASSERT_EQ(b.next("wrote"), second);
  a.thaw();
  EXPECT_EQ(a.next("refused"), first) << a.said();
  EXPECT_EQ(a.next("lost"), first) << a.said();
  ASSERT_EQ(b.next("wrote"), second) << "who leads goes on";

  b.kill();
  auto third = a.next("leads");
  ASSERT_FALSE(third.empty()) << a.said();
  EXPECT_GT(std::stoll(third), std::stoll(second));
  ASSERT_EQ(a.next("wrote"), third);
  auto fences = fences_until(begin, std::stoll(third));
  ASSERT_FALSE(fences.empty());
  EXPECT_EQ(fences.back(), std::stoll(third));
  EXPECT_TRUE(std::is_sorted(fences.begin(), fences.end())) << "no write of an older leader after one of a newer";
}

TEST_F(leases, a_lease_is_taken_once_and_keeps_its_precision) {
  const std::string path = "/apis/coordination.k8s.io/v1/namespaces/" + ns + "/leases";
  auto made = post(path, R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15,)"
                         R"("acquireTime":"2026-01-31T12:00:00.000001Z","renewTime":"2026-01-31T12:00:00.120000Z"}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.at({"spec", "acquireTime"}), "2026-01-31T12:00:00.000001Z");
  EXPECT_EQ(made.at({"spec", "renewTime"}), "2026-01-31T12:00:00.120000Z");
  auto steal = [&](const std::string& who) {
    auto o = made.body;
    json::ensure_object(o, "spec")["holderIdentity"] = who;
    return wait(api->replace(types::leases(), o));
  };
  EXPECT_TRUE(steal("b"));
  auto late = steal("c");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), errc::conflict);
  EXPECT_EQ(post(path, R"({"metadata":{"name":"m"},"spec":{"renewTime":"yesterday"}})").status, 400);
  auto zero = post(path, R"({"metadata":{"name":"m"},"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}})");
  EXPECT_EQ(zero.status, 422) << zero.text;
  EXPECT_EQ(zero.causes(),
            (std::vector<std::string>{"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                                      "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"}));
}

}  // namespace
}  // namespace kubeopera::conformance
