// A resolver hit: the vCluster's client from memory, without and with the coroutine around it.
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <benchmark/benchmark.h>
#include <boost/asio/io_context.hpp>

using namespace kubeopera;

namespace {

// A host cluster with the Secret of every vCluster.
class host final : public http::transport {
 public:
  task<http::response> send(http::request req, bool) override {
    auto name = req.target.substr(req.target.rfind('/') + 1 + 3);
    kube::cluster_access a;
    a.host = name + ".host-ns.svc";
    a.ca_pem = ca_.certificate;
    a.token = secret("t");
    auto s = kube::make_object(kube::types::secrets(), {"host-ns", "vc-" + name});
    s["data"] = {{"config", crypto::base64_encode(kube::write_kubeconfig(a, "c"))}};
    s["metadata"].as_object()["resourceVersion"] = "1";
    co_return http::response(200, "application/json", json::write(s));
  }

 private:
  crypto::key_pair ca_ = *crypto::make_ca();
};

asio::awaitable<void> warm(vcluster::resolver& r, const std::vector<vcluster::reference>& all, int& good) {
  for (const auto& which : all) {
    auto c = co_await r.resolve(which);
    if (c && *c) ++good;
  }
}

struct filled {
  asio::io_context io;
  std::unique_ptr<vcluster::resolver> resolver;
  std::vector<vcluster::reference> all;
  int good = 0;
  filled() {
    vcluster::resolver_options o;
    o.fresh_for = std::chrono::hours(10);
    resolver = std::make_unique<vcluster::resolver>(io.get_executor(), kube::make_client(std::make_shared<host>()), std::move(o));
    for (int i = 0; i < 500; ++i)
      all.emplace_back("tenant-" + std::to_string(i % 50), "host-ns", "vcluster-" + std::to_string(i));
    spawn(io.get_executor(), warm(*resolver, all, good));
    io.run();
  }
};

filled& shared() {
  static filled f;
  return f;
}

void hit(benchmark::State& state) {
  auto& f = shared();
  if (f.good != 500) return state.SkipWithError("not every vCluster was resolved");
  std::size_t i = static_cast<std::size_t>(state.thread_index()) * 131;
  for (auto _ : state) benchmark::DoNotOptimize(f.resolver->cached(f.all[i++ % f.all.size()]));
}
BENCHMARK(hit)->Threads(1)->Threads(2)->UseRealTime();

asio::awaitable<void> many(filled& f, benchmark::State& state) {
  std::size_t i = 0;
  for (auto _ : state) {
    auto c = co_await f.resolver->resolve(f.all[i++ % f.all.size()]);
    benchmark::DoNotOptimize(c);
  }
}

void hit_awaited(benchmark::State& state) {
  auto& f = shared();
  asio::io_context io;
  spawn(io.get_executor(), many(f, state));
  io.run();
}
BENCHMARK(hit_awaited);

}  // namespace

BENCHMARK_MAIN();
