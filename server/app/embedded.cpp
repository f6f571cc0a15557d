#include "server/app/embedded.hpp"

#include "server/app/platform.hpp"
#include "server/embedded/postgres_process.hpp"

#include <kubeopera/core/backoff.hpp>
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/gitops/server.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/crds.hpp>
#include <kubeopera/testing/world.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kubeopera::inline v1::app {
namespace {

namespace fs = std::filesystem;

error cannot_write(const fs::path& p) { return {errc::unavailable, "CannotWrite", "cannot write " + p.string()}; }

result<void> write_file(const fs::path& path, const std::string& text, mode_t mode) {
  auto part = path.string() + ".part";
  int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return cannot_write(path);
  bool ok = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  ok = ::close(fd) == 0 && ok;
  if (!ok || ::rename(part.c_str(), path.c_str()) != 0) return cannot_write(path);
  return {};
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The signing key of the access tokens; made once.
result<secret> token_key(const fs::path& dir) {
  auto path = dir / "token.key";
  auto key = read_file(path);
  if (key.empty()) {
    key = crypto::random_token(48);
    KUBEOPERA_CHECK(write_file(path, key, 0600));
  }
  return secret(std::move(key));
}

result<std::string> make_token(const crypto::jwt_signer& signer, const std::string& user, const std::string& tenant, bool admin) {
  crypto::claims c;
  c.sub = user;
  c.tenant_id = tenant;
  c.platform_admin = admin;
  if (!admin) c.permissions = developer_permissions();
  c.exp = std::chrono::system_clock::now() + std::chrono::hours(24 * 30);
  return signer.sign(c);
}

// One process a data folder.
result<int> lock_folder(const fs::path& dir) {
  int fd = ::open((dir / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return cannot_write(dir / "lock");
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd);
    return error(errc::failed_precondition, "AlreadyRunning", "another kubeopera runs in " + dir.string());
  }
  return fd;
}

class embedded_run {
 public:
  explicit embedded_run(embedded_options o) : options_(std::move(o)), dir_(fs::absolute(options_.data_dir)) {}

  result<void> run() {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of that write, not our end
    KUBEOPERA_CHECK(prepare());
    boost::asio::signal_set signals(io_, SIGINT, SIGTERM);
    signals.async_wait([this](boost::system::error_code, int) {
      stopping_ = true;
      stop_.notify();
    });
    result<void> outcome;
    spawn(io_.get_executor(), body(outcome, signals));
    std::vector<std::thread> threads;
    auto count = std::max(2u, std::thread::hardware_concurrency());
    for (unsigned i = 1; i < count; ++i) threads.emplace_back([this] { io_.run(); });
    io_.run();
    for (auto& t : threads) t.join();
    std::error_code ignored;
    fs::remove(dir_ / "embedded.json", ignored);
    if (postgres_) postgres_->stop();
    return outcome;
  }

 private:
  result<void> prepare() {
    std::error_code ec;
    fs::create_directories(dir_, ec);
    if (ec) return cannot_write(dir_);
    KUBEOPERA_TRY(lock_, lock_folder(dir_));
    fs::remove(dir_ / "embedded.json", ec);
    auto lvl = options_.log_level == "debug"   ? level::debug
               : options_.log_level == "warn"  ? level::warn
               : options_.log_level == "error" ? level::error
                                               : level::info;
    log_ = make_json_logger(STDERR_FILENO, lvl);
    KUBEOPERA_TRY(postgres_, start_postgres());
    KUBEOPERA_TRY(key_, token_key(dir_));
    if (auto saved = json::read_object(read_file(dir_ / "ports.json"))) ports_ = std::move(*saved);
    KUBEOPERA_CHECK(open_world());
    KUBEOPERA_CHECK(open_fleet());
    return open_platform();
  }

  result<std::unique_ptr<embedded::postgres_process>> start_postgres() {
    embedded::postgres_options pg;
    pg.directory = (dir_ / "postgres").string();
    return embedded::postgres_process::start(pg, *log_);
  }

  // A PostgreSQL that dies is started again, in the same place: the pools find it there.
  asio::awaitable<void> keep_postgres() {
    backoff pause(std::chrono::milliseconds(200), std::chrono::seconds(10));
    std::function<result<void>()> again = [this]() -> result<void> {
      postgres_.reset();  // gives up the folder
      KUBEOPERA_TRY(postgres_, start_postgres());
      return {};
    };
    while (true) {
      if (postgres_) {
        auto ended = co_await postgres_->run();
        if (ended || ended.error().code() == errc::cancelled) co_return;
        log_->error("PostgreSQL has died; it is started again", {{"error", ended.error()}});
      }
      auto started = co_await blocking_.run<void>(again);
      if (started)
        pause.reset();
      else
        log_->error("PostgreSQL does not start", {{"error", started.error()}});
      if (co_await kubeopera::detail::cancelled()) co_return;
      if (started) continue;
      auto waited = co_await sleep_for(pause.next());
      if (!waited) co_return;
    }
  }

  result<void> open_world() {
    testing::world_options w;
    w.directory = (dir_ / "clusters").string();
    w.crds = manifest::crds();
    w.base_domain = base_domain;
    w.plain_listener = true;
    w.simulation.flux_quiet = true;
    KUBEOPERA_TRY(world_, testing::world::open(io_.get_executor(), w, clock::real(), *log_));
    return {};
  }

  // A listener on the port of the last start, or on any free one.
  result<std::unique_ptr<http::server>> listen(const std::string& what, http::handler h) {
    http::server_options o;
    o.port = static_cast<std::uint16_t>(json::get_int(ports_, {what}));
    auto server = http::server::listen(io_.get_executor(), o, h, *log_);
    if (!server && o.port != 0) {
      o.port = 0;
      server = http::server::listen(io_.get_executor(), o, h, *log_);
    }
    if (server) ports_[what] = (*server)->port();
    return server;
  }

  result<void> open_fleet() {
    auto repository = (dir_ / "fleet.git").string();
    KUBEOPERA_TRY(store_, gitops::open_store(repository));
    gitops::git_server_options g;
    g.repository = repository;
    g.prefix = "/fleet.git";
    KUBEOPERA_TRY(git_server_, listen("git", gitops::make_git_http_handler(g, *log_)));
    return {};
  }

  std::string fleet_url() const { return "http://127.0.0.1:" + std::to_string(git_server_->port()) + "/fleet.git"; }

  result<void> open_platform() {
    surroundings s;
    s.executor = io_.get_executor();
    s.log = log_;
    s.host = world_->host_client();
    auto* w = world_.get();
    s.connect_to = [w](const std::string& host) { return w->connect_to(host).value_or(""); };
    s.fleet_store = store_;
    auto repository = (dir_ / "fleet.git").string();
    auto store = store_;
    s.fleet_remote = [repository, store] { return gitops::make_file_remote(repository, store); };
    s.database_url = postgres_->url();
    KUBEOPERA_TRY(s.authenticate, make_authenticator(key_, crypto::jwt_options()));
    s.apps_base_domain = base_domain;
    s.apps_https_port = world_->front_port();
    s.probes.ca_pem = world_->apps_ca();
    s.probes.connect_to = "127.0.0.1:" + std::to_string(world_->front_port());
    s.delivery.fleet_url = fleet_url();
    auto port = options_.port != 0 ? options_.port : static_cast<int>(json::get_int(ports_, {"api"}, -1));
    std::vector<std::string> roles{"api", "app", "app-controller"};
    if (options_.adjust) options_.adjust(s, roles);
    auto made = platform::make(s, roles, "127.0.0.1", port);
    if (!made && options_.port == 0 && made.error().code() == errc::unavailable) made = platform::make(s, roles, "127.0.0.1", -1);
    if (!made) return made.error();
    platform_ = std::move(*made);
    ports_["api"] = platform_->port_of("api");
    return write_file(dir_ / "ports.json", json::write(ports_), 0644);
  }

  asio::awaitable<void> body(result<void>& outcome, boost::asio::signal_set& signals) {
    outcome = co_await supervise();
    signals.cancel();
  }

  static asio::awaitable<void> keep(task<void> work, std::shared_ptr<std::optional<error>> failure, notifier& changed) {
    auto r = co_await std::move(work);
    if (!r && r.error().code() != errc::cancelled) *failure = r.error();
    changed.notify();
  }

  task<void> supervise() {
    auto executor = io_.get_executor();
    auto failure = std::make_shared<std::optional<error>>();
    auto world_run = background::start(executor, keep(world_->run(), failure, stop_));
    auto git_run = background::start(executor, keep(git_server_->run(), failure, stop_));
    auto postgres_run = background::start(executor, keep_postgres());
    auto started = world_->wait_started();
    auto ready = co_await with_deadline<void>(std::chrono::seconds(30), std::move(started));
    if (ready) ready = co_await platform_->migrate();
    background platform_run;
    if (ready) {
      platform_run = background::start(executor, keep(platform_->run(), failure, stop_));
      ready = co_await wait_ready(failure);
    }
    if (ready) ready = announce();
    while (ready && !stopping_ && !*failure) {
      auto ticket = stop_.ticket();
      if (stopping_ || *failure) break;
      // The file names every vCluster; they come and go.
      static_cast<void>(co_await stop_.wait_for(ticket, std::chrono::milliseconds(200)));
      if (vcluster_files() != announced_) ready = announce();
    }
    log_->info("stopping");
    platform_->stop();
    static_cast<void>(co_await platform_run.join());
    postgres_run.stop();
    static_cast<void>(co_await postgres_run.join());
    git_run.stop();
    static_cast<void>(co_await git_run.join());
    world_run.stop();
    static_cast<void>(co_await world_run.join());
    if (!ready) co_return ready;
    if (*failure) co_return **failure;
    co_return result<void>();
  }

  task<void> wait_ready(std::shared_ptr<std::optional<error>> failure) {
    for (int i = 0; i < 3000; ++i) {
      if (platform_->ready()) co_return result<void>();
      if (*failure) co_return **failure;
      if (stopping_) co_return error(errc::cancelled, "Cancelled", "stopped before it was ready");
      KUBEOPERA_CO_CHECK(co_await sleep_for(std::chrono::milliseconds(10)));
    }
    co_return error(errc::deadline_exceeded, "NotReady", "the platform did not become ready in 30 s");
  }

  json::object vcluster_files() const {
    json::object out;
    for (const auto& v : world_->vclusters()) out[v.name] = v.kubeconfig;
    return out;
  }

  result<void> announce() {
    KUBEOPERA_TRY(auto signer, crypto::jwt_signer::make(key_));
    KUBEOPERA_TRY(auto token, make_token(signer, "developer@example.com", "demo", false));
    KUBEOPERA_TRY(auto admin, make_token(signer, "operator@example.com", "", true));
    announced_ = vcluster_files();
    json::object o;
    o["api_url"] = "http://127.0.0.1:" + std::to_string(platform_->port_of("api"));
    o["token"] = token;
    o["admin_token"] = admin;
    o["tenant"] = "demo";
    o["kube_url"] = world_->plain_url();
    o["kubeconfig"] = world_->host_kubeconfig();
    o["vclusters"] = announced_;
    o["fleet_url"] = fleet_url();
    o["apps_ca"] = world_->apps_ca_file();
    o["apps_resolve"] = "*:" + std::to_string(world_->front_port()) + ":127.0.0.1";
    o["app_service_url"] = "http://127.0.0.1:" + std::to_string(platform_->port_of("app"));
    o["pid"] = ::getpid();
    KUBEOPERA_CHECK(write_file(dir_ / "embedded.json", json::write_pretty(o) + "\n", 0600));
    if (!std::exchange(ready_said_, true))
      log_->info("ready", {{"api", std::string(json::get_string(o, {"api_url"}))}, {"file", (dir_ / "embedded.json").string()}});
    return {};
  }

  static constexpr const char* base_domain = "apps.kubeopera.localhost";
  embedded_options options_;
  fs::path dir_;
  int lock_ = -1;
  boost::asio::io_context io_;
  std::shared_ptr<logger> log_;
  std::unique_ptr<embedded::postgres_process> postgres_;
  offload blocking_{1};
  secret key_;
  json::object ports_, announced_;
  bool ready_said_ = false;
  std::unique_ptr<testing::world> world_;
  std::shared_ptr<gitops::object_store> store_;
  std::unique_ptr<http::server> git_server_;
  std::unique_ptr<platform> platform_;
  notifier stop_;
  std::atomic<bool> stopping_{false};
};

}  // namespace

result<void> run_embedded(const embedded_options& options) {
  embedded_run run(options);
  return run.run();
}

}  // namespace kubeopera::inline v1::app
