// `kubeopera embedded` with its effects counted, and broken where the environment says so:
//   KUBEOPERA_WALK       "<kind or any>:<number>:<fault>", see effects.hpp
//   KUBEOPERA_WALK_LOG   file that gets a line for every effect
//   KUBEOPERA_WALK_ROLES "app" leaves the API and the controllers to processes that join
//   KUBEOPERA_WALK_STORE "apart": objects in a store of their own, as where the Git server is another machine
// walk_server embedded --data-dir DIR               as the product
// walk_server join --data-dir DIR --name NAME       API and controllers in a process of their own, on the clusters, database and
//                                                   fleet repository of DIR; NAME.json says where
#include "server/app/embedded.hpp"
#include "tests/walk/observed.hpp"

#include <kubeopera/http/client.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace kubeopera::walk {

namespace {

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

result<void> keep_objects_apart(app::surroundings& s, const std::string& dir, const std::string& name) {
  auto repository = s.fleet_store->directory();
  KUBEOPERA_TRY(auto own, gitops::open_store(dir + "/" + name + ".git"));
  s.fleet_store = own;
  s.fleet_remote = [repository, own] { return gitops::make_file_remote(repository, own); };
  return {};
}

void adjust(app::surroundings& s, const std::string& dir, const std::string& name, effects& seen) {
  s.reservation = std::chrono::seconds(1);  // a walk has many deaths; none should cost seconds
  s.outbox_lease = std::chrono::milliseconds(700);
  if (environment("KUBEOPERA_WALK_STORE") == "apart") {
    if (auto r = keep_objects_apart(s, dir, name); !r) throw std::runtime_error(to_string(r.error()));
  }
  observe(s, seen);
}

result<void> run_embedded(const std::string& dir, effects& seen) {
  app::embedded_options o;
  o.data_dir = dir;
  o.adjust = [&](app::surroundings& s, std::vector<std::string>& roles) {
    adjust(s, dir, "embedded", seen);
    if (environment("KUBEOPERA_WALK_ROLES") == "app") roles = {"app"};
  };
  return app::run_embedded(o);
}

// ---- a process that joins -------------------------------------------------------------------------------------------

result<app::surroundings> surroundings_of(asio::any_io_executor executor, const std::string& dir) {
  KUBEOPERA_TRY(auto info, json::read_object(contents(dir + "/embedded.json")));
  auto text = [&info](std::string_view key) { return std::string(json::get_string(info, {key})); };
  app::surroundings s;
  s.executor = executor;
  s.log = make_json_logger(STDERR_FILENO, level::info);
  KUBEOPERA_TRY(auto host, http::make_client(executor, http::client_options(text("kube_url"))));
  s.host = kube::make_client(host);
  s.connect_to = [dir](const std::string& svc_host) {
    auto port = contents(dir + "/clusters/vclusters/" + svc_host.substr(0, svc_host.find('.')) + "/port");
    return port.empty() ? std::string() : "127.0.0.1:" + port;
  };
  KUBEOPERA_TRY(s.fleet_store, gitops::open_store(dir + "/fleet.git"));
  auto store = s.fleet_store;
  s.fleet_remote = [store] { return gitops::make_file_remote(store->directory(), store); };
  s.database_url = "host='" + dir + "/postgres/run' port=5432 user=kubeopera dbname=postgres";
  KUBEOPERA_TRY(s.authenticate, app::make_authenticator(secret(contents(dir + "/token.key")), crypto::jwt_options()));
  s.apps_base_domain = "apps.kubeopera.localhost";
  auto front = text("apps_resolve").substr(2);  // "*:port:address"
  s.apps_https_port = std::atoi(front.c_str());
  s.probes.ca_pem = contents(text("apps_ca"));
  s.probes.connect_to = "127.0.0.1:" + front.substr(0, front.find(':'));
  s.delivery.fleet_url = text("fleet_url");
  s.elect_leader = true;
  return s;
}

result<void> announce(const std::string& dir, const std::string& name, const app::platform& p) {
  json::object o{{"api_url", "http://127.0.0.1:" + std::to_string(p.port_of("api"))}, {"pid", ::getpid()}};
  auto path = dir + "/" + name + ".json";
  std::ofstream out(path + ".part");
  out << json::write(o);
  out.close();
  std::error_code ec;
  std::filesystem::rename(path + ".part", path, ec);
  if (!out || ec) return error(errc::unavailable, "CannotWrite", "cannot write " + path);
  return {};
}

struct joined {
  boost::asio::io_context io;
  boost::asio::signal_set signals{io, SIGINT, SIGTERM};
  std::unique_ptr<app::platform> running;
};

task<void> serve(joined& j, const std::string& dir, const std::string& name, effects& seen) {
  KUBEOPERA_CO_TRY(auto s, surroundings_of(j.io.get_executor(), dir));
  adjust(s, dir, name, seen);
  std::vector<std::string> roles{"api", "app-controller"};
  KUBEOPERA_CO_TRY(j.running, app::platform::make(s, roles, "127.0.0.1", -1));
  KUBEOPERA_CO_CHECK(co_await j.running->migrate());
  // The port is bound already; requests are answered as soon as run() serves them.
  KUBEOPERA_CO_CHECK(announce(dir, name, *j.running));
  co_return co_await j.running->run();
}

asio::awaitable<void> keep(joined& j, task<void> work, result<void>& out) {
  out = co_await std::move(work);
  j.signals.cancel();
}

result<void> run_joined(const std::string& dir, const std::string& name, effects& seen) {
  joined j;
  j.signals.async_wait([&j](boost::system::error_code ec, int) {
    if (!ec && j.running) j.running->stop();
  });
  result<void> out = error();
  spawn(j.io.get_executor(), keep(j, serve(j, dir, name, seen), out));
  std::thread second([&j] { j.io.run(); });
  j.io.run();
  second.join();
  return out;
}

}  // namespace

}  // namespace kubeopera::walk

int main(int argc, char** argv) {
  using namespace kubeopera;
  std::string what = argc > 1 ? argv[1] : "", dir, name = "joined";
  for (int i = 2; i + 1 < argc; i += 2) (std::string(argv[i]) == "--name" ? name : dir) = argv[i + 1];
  if ((what != "embedded" && what != "join") || dir.empty()) {
    std::fputs("walk_server embedded|join --data-dir DIR [--name NAME]\n", stderr);
    return 2;
  }
  walk::effects seen(walk::environment("KUBEOPERA_WALK"), walk::environment("KUBEOPERA_WALK_LOG"));
  auto done = what == "join" ? walk::run_joined(dir, name, seen) : walk::run_embedded(dir, seen);
  if (done) return 0;
  std::fprintf(stderr, "walk_server: %s\n", to_string(done.error()).c_str());
  return 1;
}
