#include "server/cli/tour.hpp"

#include "server/cli/api_client.hpp"
#include "server/cli/terminal.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/id.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/gitops/fleet.hpp>
#include <kubeopera/http/url.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/client.hpp>
#include <kubeopera/kube/kubeconfig.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kubeopera::inline v1::cli {
namespace {

constexpr auto stage_limit = std::chrono::seconds(60);

result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return error(errc::not_found, "FileNotFound", "cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

error failed(const std::string& what) { return {errc::failed_precondition, "TourFailed", "the tour expected: " + what}; }

class tour {
 public:
  tour(asio::any_io_executor executor, tour_options options) : executor_(std::move(executor)), options_(std::move(options)) {}

  task<tour_result> run() {
    KUBEOPERA_CO_CHECK(connect());
    intro();
    KUBEOPERA_CO_CHECK(co_await make_cloudspace());
    KUBEOPERA_CO_CHECK(co_await deploy_examples());
    KUBEOPERA_CO_CHECK(co_await change_one());
    KUBEOPERA_CO_CHECK(co_await show_history());
    KUBEOPERA_CO_CHECK(co_await delete_all());
    std::printf("\n%s %d statements held.\n", green("Done:").c_str(), result_.proved);
    co_return result_;
  }

 private:
  struct deployed {
    std::string id, name, resource, url, host, vcluster;
    json::object request;
  };

  // ---- small parts ----
  void heading(const std::string& text) { std::printf("\n%s\n", bold(text).c_str()); }
  void proved(const std::string& text) {
    ++result_.proved;
    std::printf("  %s %s\n", green("✓").c_str(), text.c_str());
    std::fflush(stdout);
  }

  result<void> connect() {
    KUBEOPERA_TRY(auto text, read_file(options_.embedded_file));
    KUBEOPERA_TRY(info_, json::read_object(text));
    KUBEOPERA_TRY(api_, api_client::make(executor_, std::string(json::get_string(info_, {"api_url"})),
                                         std::string(json::get_string(info_, {"token"}))));
    return {};
  }

  void intro() {
    std::puts(bold("kubeopera tour").c_str());
    std::puts(
        "Real here: the HTTP API, PostgreSQL with its outbox, the controllers, the fleet repository (Git over HTTP), TLS, and "
        "every\n"
        "Kubernetes object. Simulated: containers, the kubelet and the cluster that would run them; Flux's two controllers are "
        "played by\n"
        "an imitation that fetches, builds, applies and prunes as Flux does.");
    std::printf("API %s  ·  docs %s/docs\n", std::string(json::get_string(info_, {"api_url"})).c_str(),
                std::string(json::get_string(info_, {"api_url"})).c_str());
  }

  static std::string stage_mark(std::string_view state) {
    if (state == "succeeded") return green("✓");
    if (state == "failed") return red("✗");
    if (state == "running") return yellow("…");
    return dim("·");
  }

  static std::vector<std::string> stage_lines(const json::object& status) {
    std::vector<std::string> lines;
    auto* stages = json::get_array(status, {"stages"});
    for (std::size_t i = 0; stages && i < stages->size(); ++i) {
      const auto& s = (*stages)[i].as_object();
      auto state = json::get_string(s, {"state"});
      std::string line = "    " + stage_mark(state) + " " + std::string(json::get_string(s, {"name"}));
      line.append(14 - std::min<std::size_t>(13, json::get_string(s, {"name"}).size()), ' ');
      line += std::string(state);
      if (auto cause = json::get_string(s, {"cause"}); !cause.empty() && state != "succeeded") line += "  " + std::string(cause);
      if (auto message = json::get_string(s, {"message"}); !message.empty() && state != "pending")
        line += dim("  " + std::string(message.substr(0, 110)));
      lines.push_back(line);
    }
    return lines;
  }

  // Follows an app until its phase is one of wanted (and its revision the given one). Returns the last status.
  task<json::object> follow(const deployed& app, std::vector<std::string> wanted, std::int64_t revision = 0) {
    live_block block;
    json::object last;
    bool reached = false;
    auto on_status = [&](const json::object& status) {
      last = status;
      block.show(stage_lines(status));
      auto phase = json::get_string(status, {"phase"});
      reached = json::get_int(status, {"revision"}) >= revision && std::find(wanted.begin(), wanted.end(), phase) != wanted.end();
      return !reached;
    };
    auto watch = api_->watch_status(app.id, on_status);
    auto watched = co_await with_deadline<void>(stage_limit, std::move(watch));
    if (!reached) {
      if (!watched && watched.error().code() != errc::deadline_exceeded) co_return watched.error();
      co_return failed(app.name + " to become " + wanted[0] + ", it is " +
                       std::string(json::get_string(last, {"phase"}, "unknown")));
    }
    co_return last;
  }

  task<http::response> ask(const deployed& app) {
    http::client_options o(app.url);
    KUBEOPERA_CO_TRY(o.tls.ca_pem, read_file(std::string(json::get_string(info_, {"apps_ca"}))));
    o.connect_to = front_door();
    KUBEOPERA_CO_TRY(auto client, http::make_client(executor_, o));
    http::request req("GET", "/");
    co_return co_await client->send(std::move(req));
  }

  // "*:PORT:ADDRESS", as curl's --resolve takes it, to "ADDRESS:PORT".
  std::string front_door() const {
    std::string resolve(json::get_string(info_, {"apps_resolve"}));
    auto first = resolve.find(':'), second = resolve.find(':', first + 1);
    if (second == std::string::npos) return {};
    return resolve.substr(second + 1) + ":" + resolve.substr(first + 1, second - first - 1);
  }

  std::string curl_for(const deployed& app) const {
    return "curl --cacert " + std::string(json::get_string(info_, {"apps_ca"})) + " --resolve '" +
           std::string(json::get_string(info_, {"apps_resolve"})) + "' " + app.url + "/";
  }

  // The server writes a vCluster's kubeconfig into its file soon after it is ready.
  task<std::string> vcluster_kubeconfig() {
    auto started = clock::real().steady();
    while (true) {
      KUBEOPERA_CO_CHECK(connect());
      std::string path(json::get_string(info_, {"vclusters", vcluster_}));
      if (!path.empty()) co_return path;
      if (clock::real().steady() - started > stage_limit) co_return failed("embedded.json to name the vCluster's kubeconfig");
      KUBEOPERA_CO_CHECK(co_await sleep_for(std::chrono::milliseconds(50)));
    }
  }

  task<std::shared_ptr<kube::client>> cluster(std::string kubeconfig_path) {
    KUBEOPERA_CO_TRY(auto text, read_file(kubeconfig_path));
    kube::kubeconfig_policy policy;
    policy.addresses = [](const http::ip_address&) { return result<void>(); };  // our own server, on loopback
    KUBEOPERA_CO_TRY(auto access, kube::read_kubeconfig(text, policy));
    KUBEOPERA_CO_TRY(auto client, kube::make_client(executor_, access));
    co_return client;
  }

  // ---- steps ----
  task<void> make_cloudspace() {
    heading("1. A CloudSpace with a vCluster of its own");
    auto name = "tour-" + make_uuid_v4().substr(0, 4);
    json::value body = json::object{{"name", name}, {"display_name", "Guided tour"}};
    auto started = clock::real().steady();
    KUBEOPERA_CO_TRY(auto made, co_await api_->call("POST", "/api/v1/cloudspaces", &body, make_uuid_v7()));
    space_ = json::get_string(made.as_object(), {"id"});
    while (true) {
      KUBEOPERA_CO_TRY(auto seen, co_await api_->get("/api/v1/cloudspaces/" + space_));
      vcluster_ = json::get_string(seen.as_object(), {"default_vcluster"});
      if (json::get_string(seen.as_object(), {"phase"}) == "ready") break;
      if (clock::real().steady() - started > stage_limit) co_return failed("the vCluster to become ready");
      KUBEOPERA_CO_CHECK(co_await sleep_for(std::chrono::milliseconds(50)));
    }
    proved("CloudSpace " + name + ": vCluster " + vcluster_ + " is ready (its kubeconfig is a Secret on the host cluster)");
    co_return result<void>();
  }

  task<deployed> deploy(const std::string& path) {
    KUBEOPERA_CO_TRY(auto text, read_file(path));
    KUBEOPERA_CO_TRY(auto body, json::read_object(text));
    body["cloudspace_id"] = space_;
    json::value request(body);
    KUBEOPERA_CO_TRY(auto made, co_await api_->call("POST", "/api/v1/apps", &request, make_uuid_v7()));
    deployed d;
    const auto& o = made.as_object();
    d.id = json::get_string(o, {"id"});
    d.name = json::get_string(o, {"name"});
    d.url = json::get_string(o, {"url"});
    d.host = json::get_string(o, {"host"});
    d.vcluster = json::get_string(o, {"tenant_cr_name"});
    d.request = std::move(body);
    std::printf("  %s  %s  %s\n", bold(d.name).c_str(), std::string(json::get_string(o, {"image"})).c_str(), dim(d.url).c_str());
    co_return d;
  }

  task<void> prove_live(const deployed& app, std::chrono::steady_clock::time_point started) {
    auto took = std::chrono::duration<double>(clock::real().steady() - started).count();
    KUBEOPERA_CO_TRY(auto answer, co_await ask(app));
    if (answer.status >= 400) co_return failed(app.url + " to answer, it said HTTP " + std::to_string(answer.status));
    char text[64];
    std::snprintf(text, sizeof text, " answered over HTTPS %.2f s after the request", took);
    proved(app.url + text);
    co_return result<void>();
  }

  // A file whose name speaks of what goes wrong is expected to fail with this cause.
  static std::vector<std::string> expected_causes(const std::string& file) {
    if (file.find("broken-image") != std::string::npos) return {"ErrImagePull", "ImagePullBackOff"};
    if (file.find("crashing") != std::string::npos) return {"CrashLoopBackOff"};
    return {};
  }

  static std::string cause_of(const json::object& status) {
    if (auto* stages = json::get_array(status, {"stages"}))
      for (const auto& s : *stages)
        if (json::get_string(s.as_object(), {"state"}) == "failed")
          return std::string(json::get_string(s.as_object(), {"cause"}));
    return {};
  }

  task<void> deploy_examples() {
    heading("2. Six apps, each one request to POST /api/v1/apps");
    std::vector<std::string> files;
    for (const auto& f : std::filesystem::directory_iterator(options_.apps_dir))
      if (f.path().extension() == ".json") files.push_back(f.path().string());
    std::sort(files.begin(), files.end());
    if (files.empty()) co_return failed("example apps in " + options_.apps_dir);
    for (const auto& f : files) {
      auto started = clock::real().steady();
      KUBEOPERA_CO_TRY(auto app, co_await deploy(f));
      auto causes = expected_causes(f);
      std::vector<std::string> wanted;
      wanted.emplace_back(causes.empty() ? "live" : "failed");
      KUBEOPERA_CO_TRY(auto status, co_await follow(app, wanted));
      if (causes.empty()) {
        KUBEOPERA_CO_CHECK(co_await prove_live(app, started));
      } else {
        auto cause = cause_of(status);
        if (std::find(causes.begin(), causes.end(), cause) == causes.end())
          co_return failed(app.name + " to fail with " + causes[0] + ", the cause is " + cause);
        proved(app.name + " fails, and the status names why: " + cause);
      }
      apps_.push_back(std::move(app));
    }
    result_.live_url = apps_[0].url;
    result_.curl = curl_for(apps_[0]);
    co_return result<void>();
  }

  task<std::int64_t> put_config(const deployed& app, const std::function<void(json::object&)>& change) {
    KUBEOPERA_CO_TRY(auto config, co_await api_->get("/api/v1/apps/" + app.id + "/config"));
    change(config.as_object());
    KUBEOPERA_CO_CHECK(co_await api_->call("PUT", "/api/v1/apps/" + app.id + "/config", &config));
    KUBEOPERA_CO_TRY(auto now, co_await api_->get("/api/v1/apps/" + app.id));
    co_return json::get_int(now.as_object(), {"revision"});
  }

  task<void> change_one() {
    auto& app = apps_[0];
    heading("3. Scale, change the image, break it, repair it: " + app.name);
    KUBEOPERA_CO_TRY(auto scaled, co_await put_config(app, [](json::object& c) { c["replicas"] = 3; }));
    KUBEOPERA_CO_TRY(auto status, co_await follow(app, {"live"}, scaled));
    if (json::get_int(status, {"ready_replicas"}) != 3) co_return failed("three ready replicas");
    proved("scaled to 3 replicas");
    KUBEOPERA_CO_TRY(auto before, co_await api_->get("/api/v1/apps/" + app.id + "/config"));
    std::string image(json::get_string(before.as_object(), {"image"}));
    auto colon = image.rfind(':');
    auto base = colon != std::string::npos && image.find('/', colon) == std::string::npos ? image.substr(0, colon) : image;
    KUBEOPERA_CO_TRY(auto updated, co_await put_config(app, [&](json::object& c) { c["image"] = base + ":1.1.0"; }));
    KUBEOPERA_CO_CHECK(co_await follow(app, {"live"}, updated));
    proved("rolled out " + base + ":1.1.0; it was called live only when the new pods were");
    KUBEOPERA_CO_TRY(auto broken, co_await put_config(app, [&](json::object& c) { c["image"] = base + ":missing"; }));
    KUBEOPERA_CO_TRY(auto bad, co_await follow(app, {"failed"}, broken));
    KUBEOPERA_CO_TRY(auto answer, co_await ask(app));
    if (answer.status >= 400) co_return failed("the pods of the revision before to keep serving");
    proved("broke it: " + cause_of(bad) + "; the pods of the revision before keep serving");
    KUBEOPERA_CO_TRY(auto repaired, co_await put_config(app, [&](json::object& c) { c["image"] = base + ":1.1.0"; }));
    KUBEOPERA_CO_CHECK(co_await follow(app, {"live"}, repaired));
    proved("repaired it by putting the image back");
    co_return result<void>();
  }

  task<void> open_fleet() {
    auto dir = std::filesystem::temp_directory_path() / ("kubeopera-tour-" + make_uuid_v4().substr(0, 8));
    clone_dir_ = dir.string();
    KUBEOPERA_CO_TRY(fleet_, gitops::open_store(clone_dir_));
    KUBEOPERA_CO_TRY(auto url, http::parse_url(json::get_string(info_, {"fleet_url"})));
    KUBEOPERA_CO_TRY(auto transport, http::make_client(executor_, http::client_options(url.origin())));
    remote_ = gitops::make_http_remote(transport, url.target, fleet_);
    co_return result<void>();
  }

  task<std::string> fetch_fleet() {
    if (!remote_) KUBEOPERA_CO_CHECK(co_await open_fleet());
    KUBEOPERA_CO_TRY(auto tip, co_await remote_->tip("main"));
    if (!tip) co_return failed("the fleet repository to have a main branch");
    if (!fleet_->contains(*tip)) KUBEOPERA_CO_CHECK(co_await remote_->fetch(*tip, {}));
    co_return *tip;
  }

  task<void> show_history() {
    heading("4. Everything is a commit");
    KUBEOPERA_CO_TRY(auto tip, co_await fetch_fleet());
    auto at = tip;
    for (int i = 0; i < 4 && !at.empty(); ++i) {
      KUBEOPERA_CO_TRY(auto c, fleet_->read_commit(at));
      std::printf("    %s  %s\n", yellow(c.id.substr(0, 10)).c_str(), c.message.substr(0, c.message.find('\n')).c_str());
      at = c.parents.empty() ? std::string() : c.parents[0];
    }
    KUBEOPERA_CO_TRY(auto newest, fleet_->read_commit(tip));
    if (newest.message.find("Kubeopera-App: " + apps_[0].id) == std::string::npos)
      co_return failed("the newest commit to carry the app's trailer");
    proved("the fleet repository (" + std::string(json::get_string(info_, {"fleet_url"})) +
           ") names app, revision, actor and request in its trailers");
    co_return result<void>();
  }

  task<void> wait_gone(const deployed& app) {
    auto started = clock::real().steady();
    while (true) {
      auto seen = co_await api_->get("/api/v1/apps/" + app.id);
      if (!seen && seen.error().code() == errc::not_found) co_return result<void>();
      if (!seen && !seen.error().transient()) co_return seen.error();
      if (clock::real().steady() - started > stage_limit) co_return failed(app.name + " to be gone");
      KUBEOPERA_CO_CHECK(co_await sleep_for(std::chrono::milliseconds(50)));
    }
  }

  task<void> delete_all() {
    heading("5. Delete, and look for what is left");
    std::size_t from = options_.keep ? 1 : 0;
    for (std::size_t i = from; i < apps_.size(); ++i)
      KUBEOPERA_CO_CHECK(co_await api_->call("DELETE", "/api/v1/apps/" + apps_[i].id));
    for (std::size_t i = from; i < apps_.size(); ++i) KUBEOPERA_CO_CHECK(co_await wait_gone(apps_[i]));
    proved(std::to_string(apps_.size() - from) + " apps deleted");
    KUBEOPERA_CO_TRY(auto tip, co_await fetch_fleet());
    KUBEOPERA_CO_TRY(auto host, co_await cluster(std::string(json::get_string(info_, {"kubeconfig"}))));
    KUBEOPERA_CO_TRY(auto kubeconfig, co_await vcluster_kubeconfig());
    KUBEOPERA_CO_TRY(auto inside, co_await cluster(kubeconfig));
    KUBEOPERA_CO_TRY(auto resources, co_await kube::list_all(*host, kube::types::kubeopera_apps(), ""));
    for (std::size_t i = from; i < apps_.size(); ++i) {
      const auto& app = apps_[i];
      KUBEOPERA_CO_TRY(auto directory, gitops::app_directory(app.vcluster, app.name));
      if (fleet_->id_at(tip, directory)) co_return failed("no manifests of " + app.name + " in Git");
      if (auto ns = co_await inside->get(kube::types::namespaces(), {"", app.name}); ns || ns.error().code() != errc::not_found)
        co_return failed("no namespace " + app.name + " in the vCluster");
      for (const auto& r : resources.items)
        if (json::get_string(r, {"spec", "app_id"}) == app.id) co_return failed("no resource of " + app.name);
      if (auto answer = co_await ask(app); answer && answer->status < 400) co_return failed(app.url + " to answer no more");
    }
    proved("no row, no resource, no manifest in Git, no namespace in the vCluster, no answer at the addresses");
    std::error_code ignored;
    std::filesystem::remove_all(clone_dir_, ignored);
    if (options_.keep) co_return result<void>();
    KUBEOPERA_CO_CHECK(co_await api_->call("DELETE", "/api/v1/cloudspaces/" + space_));
    auto started = clock::real().steady();
    while (true) {
      auto seen = co_await api_->get("/api/v1/cloudspaces/" + space_);
      if (!seen && seen.error().code() == errc::not_found) break;
      if (clock::real().steady() - started > stage_limit) co_return failed("the CloudSpace to be gone");
      KUBEOPERA_CO_CHECK(co_await sleep_for(std::chrono::milliseconds(50)));
    }
    proved("the CloudSpace and its vCluster are gone too");
    co_return result<void>();
  }

  asio::any_io_executor executor_;
  tour_options options_;
  json::object info_;
  std::shared_ptr<api_client> api_;
  std::string space_, vcluster_, clone_dir_;
  std::vector<deployed> apps_;
  std::shared_ptr<gitops::object_store> fleet_;
  std::unique_ptr<gitops::remote> remote_;
  tour_result result_;
};

}  // namespace

task<tour_result> run_tour(asio::any_io_executor executor, tour_options options) {
  tour t(std::move(executor), std::move(options));
  co_return co_await t.run();
}

}  // namespace kubeopera::inline v1::cli
