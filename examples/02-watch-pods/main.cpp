// An informer keeps a local copy of pods; here against the in-process API server, so that it needs no cluster.
#include <kubeopera/kube/informer.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <boost/asio/io_context.hpp>

#include <cstdio>

namespace kube = kubeopera::kube;

namespace {

kube::object pod(const std::string& name) {
  auto o = kube::make_object(kube::types::pods(), {"default", name});
  o["spec"] = kubeopera::json::object{{"containers", {kubeopera::json::object{{"name", "c"}, {"image", "nginx:1.27"}}}}};
  return o;
}

kubeopera::task<void> watch_two_pods(std::shared_ptr<kube::client> client, std::shared_ptr<kube::informer> cache, int& seen) {
  kube::informer_handler handler;
  handler.added = [&seen](const kube::object_ptr& o) {
    std::printf("added %s\n", std::string(kube::name_of(*o)).c_str());
    ++seen;
  };
  cache->add_handler(handler);
  KUBEOPERA_CO_CHECK(co_await cache->wait_synced());
  for (const char* name : {"first", "second"}) {
    auto ticket = cache->changed().ticket();
    auto made = pod(name);
    KUBEOPERA_CO_CHECK(co_await client->create(kube::types::pods(), made));
    KUBEOPERA_CO_CHECK(co_await cache->changed().wait(ticket));
  }
  co_return kubeopera::result<void>();
}

boost::asio::awaitable<void> run(std::shared_ptr<kube::client> client, int& seen) {
  auto executor = co_await kubeopera::current_executor();
  auto cache = std::make_shared<kube::informer>(client, kube::types::pods());
  auto keep = [](std::shared_ptr<kube::informer> c) -> boost::asio::awaitable<void> { static_cast<void>(co_await c->run()); };
  auto running = kubeopera::background::start(executor, keep(cache));
  auto done = co_await watch_two_pods(client, cache, seen);
  if (!done) std::puts(to_string(done.error()).c_str());
  running.stop();
  static_cast<void>(co_await running.join());
}

}  // namespace

int main() {
  boost::asio::io_context io;
  kubeopera::testing::api_server server;
  int seen = 0;
  kubeopera::spawn(io.get_executor(), run(kube::make_client(server.transport()), seen));
  io.run();
  return seen == 2 ? 0 : 1;
}
