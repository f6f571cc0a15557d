#include "server/app/health.hpp"

namespace kubeopera::inline v1::app {
namespace {

task<void> ask_database(std::shared_ptr<postgres::pool> pool) {
  postgres::statement ping("select 1");
  auto r = co_await pool->query(ping);
  if (!r) co_return r.error();
  co_return result<void>();
}

task<void> ask_cluster(std::shared_ptr<kube::client> host, std::shared_ptr<kube::informer> copy) {
  if (auto trouble = copy->last_error()) co_return *trouble;
  if (!copy->synced()) co_return error(errc::unavailable, "NotSynced", "the first list has not ended yet");
  http::request ping("GET", "/version");
  auto answer = co_await host->raw(std::move(ping));
  if (!answer) co_return answer.error();
  if (answer->status != 200)
    co_return error(errc::unavailable, "ClusterUnwell", "the API server answers " + std::to_string(answer->status));
  co_return result<void>();
}

task<void> ask_git(std::shared_ptr<gitops::remote> origin, std::string branch) {
  auto tip = co_await origin->tip(branch);
  if (!tip) co_return tip.error();
  co_return result<void>();
}

}  // namespace

web::readiness_check database_check(std::shared_ptr<postgres::pool> pool) {
  return {"database", [pool] { return ask_database(pool); }};
}

web::readiness_check cluster_check(std::shared_ptr<kube::client> host, std::shared_ptr<kube::informer> copy) {
  return {"host cluster", [host, copy] { return ask_cluster(host, copy); }};
}

web::readiness_check git_check(std::shared_ptr<gitops::remote> origin, std::string branch) {
  web::readiness_check c{"git remote", [origin, branch] { return ask_git(origin, branch); }};
  c.limit = std::chrono::seconds(3);
  c.fresh_for = std::chrono::seconds(10);
  return c;
}

}  // namespace kubeopera::inline v1::app
