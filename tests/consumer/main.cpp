// Uses several components of the installed library, coroutines included.
#include <kubeopera/core/async.hpp>
#include <kubeopera/gitops/fleet.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/client.hpp>

#include <boost/asio/io_context.hpp>

#include <cstdio>

namespace {

// An API server that knows one pod.
boost::asio::awaitable<kubeopera::http::response> one_pod(kubeopera::http::request req) {
  bool list = req.target.find("/pods") != std::string::npos;
  std::string body =
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"p"}}]})";
  co_return list ? kubeopera::http::response(200, "application/json", body)
                 : kubeopera::http::response(404, "application/json", "{}");
}

boost::asio::awaitable<void> count_pods(std::shared_ptr<kubeopera::kube::client> client, std::size_t& count) {
  kubeopera::kube::list_options options;
  auto pods = co_await kubeopera::kube::list_all(*client, kubeopera::kube::types::pods(), "default", options);
  count = pods ? pods->items.size() : 0;
}

}  // namespace

int main() {
  auto parsed = kubeopera::json::read(R"({"a":1,"a":2})");
  if (parsed || parsed.error().reason() != "DuplicateKey") return 1;
  auto directory = kubeopera::gitops::app_directory("prod", "web");
  if (!directory) return 1;
  boost::asio::io_context io;
  std::size_t count = 0;
  auto client = kubeopera::kube::make_client(kubeopera::http::make_local_transport(one_pod));
  kubeopera::spawn(io.get_executor(), count_pods(client, count));
  io.run();
  std::printf("%s, %zu pod\n", directory->c_str(), count);
  return count == 1 ? 0 : 1;
}
