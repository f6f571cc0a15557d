// Kubernetes: a write that the API server accepted is the effect.
#include "tests/walk/observed.hpp"

#include <kubeopera/kube/kubeconfig.hpp>

namespace kubeopera::walk {

namespace {

error no_answer(fault f) {
  if (f == fault::timeout_before || f == fault::timeout_after)
    return {errc::deadline_exceeded, "DeadlineExceeded", "no answer in time"};
  return {errc::unavailable, "ConnectionLost", "the connection to the API server was cut"};
}

http::response status(int code, const std::string& reason) {
  return http::response(code, "application/json",
                        R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"injected","reason":")" +
                            reason + R"(","code":)" + std::to_string(code) + "}");
}

result<http::response> answer_of(fault f) {
  switch (f) {
    case fault::conflict:
      return status(409, "Conflict");
    case fault::forbid:
      return status(403, "Forbidden");
    case fault::throttle: {
      auto r = status(429, "TooManyRequests");
      r.headers.set("Retry-After", "1");
      return r;
    }
    case fault::error_before:
    case fault::error_after:
      return status(500, "InternalError");
    default:
      return no_answer(f);
  }
}

class observed_transport final : public http::transport {
 public:
  observed_transport(std::shared_ptr<http::transport> inner, effects& seen) : inner_(std::move(inner)), seen_(seen) {}

  task<http::response> send(http::request req, bool want_stream) override {
    if (req.method == "GET" || req.method == "HEAD") co_return co_await inner_->send(std::move(req), want_stream);
    auto what = req.method + " " + req.target.substr(0, req.target.find('?'));
    if (seen_.before(kind::kube, what)) co_return answer_of(seen_.what());
    auto r = co_await inner_->send(std::move(req), want_stream);
    if (r && r->status < 300 && seen_.after(kind::kube, what)) co_return answer_of(seen_.what());
    co_return r;
  }

 private:
  std::shared_ptr<http::transport> inner_;
  effects& seen_;
};

// A client's raw() as a transport: no repeats in it, so that those of the client around it are real.
class client_transport final : public http::transport {
 public:
  explicit client_transport(std::shared_ptr<kube::client> inner) : inner_(std::move(inner)) {}
  task<http::response> send(http::request req, bool want_stream) override {
    co_return co_await inner_->raw(std::move(req), want_stream);
  }

 private:
  std::shared_ptr<kube::client> inner_;
};

}  // namespace

std::shared_ptr<http::transport> observe(std::shared_ptr<http::transport> inner, effects& seen) {
  return std::make_shared<observed_transport>(std::move(inner), seen);
}

std::shared_ptr<kube::client> observe(std::shared_ptr<kube::client> inner, effects& seen) {
  std::shared_ptr<http::transport> through = std::make_shared<client_transport>(std::move(inner));
  return kube::make_client(observe(std::move(through), seen));
}

void observe(app::surroundings& s, effects& seen) {
  auto* all = &seen;
  s.host = observe(s.host, seen);
  s.wrap_pool = [all](std::shared_ptr<postgres::pool> inner) { return observe(std::move(inner), *all); };
  auto executor = s.executor;
  s.vcluster_transport = [all, executor](const kube::cluster_access& access,
                                         const std::string& connect_to) -> result<std::shared_ptr<http::transport>> {
    KUBEOPERA_TRY(auto made, kube::make_transport(executor, access, connect_to));
    return observe(std::move(made), *all);
  };
  auto inner = s.fleet_remote;
  s.fleet_remote = [all, inner] { return observe(inner(), *all); };
  s.fleet_store = observe(s.fleet_store, seen);
}

}  // namespace kubeopera::walk
