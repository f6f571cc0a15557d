// source-controller: a GitRepository's branch is fetched into an object store; its tip is the artifact.
#include "src/testing/flux_controllers.hpp"
#include "src/testing/sim_meta.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/http/client.hpp>

#include <filesystem>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

namespace {

const std::string manager = "source-controller";

std::string commit_of(std::string_view revision) {
  auto at = revision.rfind("sha1:");
  return at == std::string_view::npos ? std::string() : std::string(revision.substr(at + 5));
}

struct url_parts {
  std::string origin, host, path;
};

std::optional<url_parts> split_url(const std::string& url) {
  auto scheme = url.find("://");
  if (scheme == std::string::npos) return std::nullopt;
  auto slash = url.find('/', scheme + 3);
  url_parts out;
  out.origin = url.substr(0, slash);
  out.path = slash == std::string::npos ? "/" : url.substr(slash);
  out.host = out.origin.substr(scheme + 3);
  if (out.host.find(':') == std::string::npos) out.host += url.starts_with("https") ? ":443" : ":80";
  return out;
}

// Each fetch is a pack, with deltas that are not merged, and each pack an open file: with so many the branch is fetched afresh.
constexpr int packs_a_store = 64;

class source_controller final : public worker_controller {
 public:
  source_controller(environment& e, fetched_sources& s) : worker_controller(e), sources_(s) {}
  std::string_view name() const override { return "source-controller"; }
  std::vector<resource_type> watches() const override { return {kube::types::git_repositories()}; }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    if (type != kube::types::git_repositories() || !after) return;
    bool woken = !before || kube::generation_of(*before) != kube::generation_of(*after) ||
                 kube::annotation_of(*before, flux_request) != kube::annotation_of(*after, flux_request) ||
                 (kube::being_deleted(*after) && !kube::being_deleted(*before));
    if (woken) enqueue(kube::key_of(*after));
  }

 protected:
  task<std::optional<duration>> pass(object_key key) override;

 private:
  struct fetched {
    std::string revision, commit;
  };
  task<std::optional<duration>> sync(flux_status& s, object_key key, std::string handled);
  task<std::optional<duration>> failed(flux_status& s, object_key key, std::string message, std::string handled);
  task<fetched> fetch(const object& obj, object_key key);
  result<std::shared_ptr<gitops::object_store>> store_of(const object_key& key);
  std::string directory_of(const object_key& key) const;
  int packs_of(const object_key& key) const;
  std::string begin_afresh(const object_key& key) const;
  result<void> put_in_place(const object_key& key);
  result<std::unique_ptr<gitops::remote>> remote_of(const object& obj, const std::string& url,
                                                    std::shared_ptr<gitops::object_store> store);
  result<object> artifact_of(const object_key& key, const fetched& f);
  void progress(flux_status& s, bool drift, std::string message);
  void tell(const flux_status& s, std::string reason, std::string message, bool warning = false);

  fetched_sources& sources_;
  std::map<object_key, int> failures_;
  std::map<object_key, std::string> last_failure_;
};

void source_controller::progress(flux_status& s, bool drift, std::string message) {
  s.set("Reconciling", "True", "Progressing", message);
  if (drift || !s.find("Ready")) s.set("Ready", "Unknown", "Progressing", std::move(message));
}

void source_controller::tell(const flux_status& s, std::string reason, std::string message, bool warning) {
  happening h;
  h.key = kube::key_of(s.obj());
  h.api_version = kube::types::git_repositories().api_version();
  h.kind = "GitRepository";
  h.uid = std::string(kube::uid_of(s.obj()));
  h.resource_version = std::string(kube::resource_version_of(s.obj()));
  h.type = warning ? "Warning" : "Normal";
  h.reason = std::move(reason);
  h.message = std::move(message);
  h.component = h.manager = manager;
  env.record(std::move(h));
}

result<std::shared_ptr<gitops::object_store>> source_controller::store_of(const object_key& key) {
  if (auto it = sources_.stores.find(key); it != sources_.stores.end()) return it->second;
  if (env.options.flux_directory.empty()) return error(errc::failed_precondition, "NoDirectory", "flux_directory is not set");
  KUBEOPERA_TRY(auto store, gitops::open_store(directory_of(key)));
  sources_.stores[key] = store;
  return store;
}

std::string source_controller::directory_of(const object_key& key) const {
  return env.options.flux_directory + "/" + key.ns + "." + key.name + ".git";
}

// The next fetch reports a directory that cannot be read.
int source_controller::packs_of(const object_key& key) const {
  int out = 0;
  std::error_code ec;
  for (std::filesystem::directory_iterator it(directory_of(key) + "/objects/pack", ec), end; !ec && it != end; it.increment(ec))
    out += it->path().extension() == ".pack";
  return out;
}

// An empty directory for a store that takes the place of the one in use.
std::string source_controller::begin_afresh(const object_key& key) const {
  auto path = directory_of(key) + ".next";
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  return path;
}

result<void> source_controller::put_in_place(const object_key& key) {
  auto path = directory_of(key);
  std::error_code ec;
  std::filesystem::remove_all(path, ec);
  if (!ec) std::filesystem::rename(path + ".next", path, ec);
  sources_.stores.erase(key);
  if (ec) return error(errc::unavailable, "GitOperationFailed", "the source's store cannot be replaced: " + ec.message());
  KUBEOPERA_CHECK(store_of(key));
  return {};
}

result<std::unique_ptr<gitops::remote>> source_controller::remote_of(const object& obj, const std::string& url,
                                                                     std::shared_ptr<gitops::object_store> store) {
  if (url.starts_with("file://")) return gitops::make_file_remote(url.substr(7), std::move(store));
  std::string user, password;
  if (auto name = json::get_string(obj, {"spec", "secretRef", "name"}); !name.empty()) {
    object_key at;
    at.ns = std::string(kube::namespace_of(obj));
    at.name = std::string(name);
    auto found = env.objects.get(kube::types::secrets(), at);
    if (!found) return error(errc::not_found, "AuthenticationFailed", "secrets \"" + at.name + "\" not found");
    for (auto [field, out] : {std::pair<std::string_view, std::string*>{"username", &user}, {"password", &password}}) {
      auto decoded = crypto::base64_decode(json::get_string(*found, {"data", field}));
      if (decoded) *out = *decoded;
    }
  }
  std::shared_ptr<http::transport> transport;
  std::string path;
  if (env.options.git_transport) {
    KUBEOPERA_TRY(auto both, env.options.git_transport(url));
    transport = both.first;
    path = both.second;
  } else {
    auto parts = split_url(url);
    if (!parts) return error(errc::invalid_argument, "URLInvalid", "cannot use the URL '" + url + "'");
    http::client_options options(parts->origin);
    KUBEOPERA_TRY(transport, http::make_client(env.strand, options));
    path = parts->path;
  }
  return gitops::make_http_remote(transport, path, std::move(store), user, secret(password));
}

// The text Flux gives for what went wrong with the remote.
std::string remote_error(const error& e, const std::string& url) {
  std::string start = "failed to checkout and determine revision: unable to list remote for '" + url + "': ";
  if (e.code() == errc::not_found) return start + "repository not found: ";
  if (e.code() == errc::unauthenticated || e.code() == errc::permission_denied)
    return start + "authentication required: " + e.message();
  auto parts = split_url(url);
  if (e.code() == errc::unavailable && parts && e.reason() == "ConnectFailed") {
    return start + "Get \"" + url + "/info/refs?service=git-upload-pack\": dial tcp " + parts->host +
           ": connect: connection refused";
  }
  return start + e.message();
}

task<source_controller::fetched> source_controller::fetch(const object& obj, object_key key) {
  auto url = std::string(json::get_string(obj, {"spec", "url"}));
  auto branch = std::string(json::get_string(obj, {"spec", "ref", "branch"}, "master"));
  KUBEOPERA_CO_TRY(auto store, store_of(key));
  KUBEOPERA_CO_TRY(auto remote, remote_of(obj, url, store));
  auto tip = co_await remote->tip(branch);
  if (!tip && tip.error().code() == errc::cancelled) co_return tip.error();
  if (!tip) co_return error(tip.error().code(), "GitOperationFailed", remote_error(tip.error(), url));
  if (!*tip) {
    co_return error(errc::not_found, "GitOperationFailed",
                    "failed to checkout and determine revision: unable to clone '" + url +
                        "': couldn't find remote ref \"refs/heads/" + branch + "\"");
  }
  fetched out;
  out.commit = **tip;
  out.revision = branch + "@sha1:" + out.commit;
  if (!store->contains(out.commit)) {
    bool afresh = packs_of(key) >= packs_a_store;
    if (afresh) {
      KUBEOPERA_CO_TRY(store, gitops::open_store(begin_afresh(key)));
      KUBEOPERA_CO_TRY(remote, remote_of(obj, url, store));
    }
    std::vector<std::string> have;
    auto last = commit_of(json::get_string(obj, {"status", "artifact", "revision"}));
    if (!last.empty() && store->contains(last)) have.push_back(last);
    auto got = co_await remote->fetch(out.commit, have);
    if (!got && got.error().code() == errc::cancelled) co_return got.error();
    if (!got) co_return error(got.error().code(), "GitOperationFailed", remote_error(got.error(), url));
    if (afresh) KUBEOPERA_CO_CHECK(put_in_place(key));
  }
  co_return out;
}

result<object> source_controller::artifact_of(const object_key& key, const fetched& f) {
  KUBEOPERA_TRY(auto store, store_of(key));
  KUBEOPERA_TRY(auto tree, store->id_at(f.commit, ""));
  object a;
  auto path = "gitrepository/" + key.ns + "/" + key.name + "/" + f.commit + ".tar.gz";
  a["digest"] = "sha256:" + crypto::sha256_hex(tree);
  a["lastUpdateTime"] = env.now();
  a["path"] = path;
  a["revision"] = f.revision;
  a["size"] = 0;
  a["url"] = "http://source-controller." + env.options.flux_namespace + ".svc.cluster.local./" + path;
  return a;
}

task<std::optional<duration>> source_controller::pass(object_key key) {
  auto stored = env.objects.get(kube::types::git_repositories(), key);
  if (!stored) co_return std::optional<duration>();
  if (kube::being_deleted(*stored)) {
    if (!has_finalizer(*stored, flux_finalizer)) co_return std::optional<duration>();
    flux_status s(env, kube::types::git_repositories(), *stored, manager);
    auto copy = *stored;
    remove_finalizer(copy, flux_finalizer);
    const auto* left = json::get_array(copy, {"metadata", "finalizers"});
    json::array rest;
    if (left) rest = *left;
    KUBEOPERA_CO_CHECK(co_await s.set_finalizers(rest));
    sources_.stores.erase(key);
    std::error_code ignored;
    std::filesystem::remove_all(directory_of(key), ignored);
    std::filesystem::remove_all(directory_of(key) + ".next", ignored);
    co_return std::optional<duration>();
  }
  if (!has_finalizer(*stored, flux_finalizer)) {
    flux_status s(env, kube::types::git_repositories(), *stored, manager);
    auto copy = *stored;
    add_finalizer(copy, flux_finalizer);
    KUBEOPERA_CO_CHECK(co_await s.set_finalizers(*json::get_array(copy, {"metadata", "finalizers"})));
    stored = env.objects.get(kube::types::git_repositories(), key);
    if (!stored) co_return std::optional<duration>();
  }
  if (json::get_bool(*stored, {"spec", "suspend"})) co_return std::optional<duration>();
  flux_status s(env, kube::types::git_repositories(), *stored, manager);
  auto asked = std::string(kube::annotation_of(*stored, flux_request));
  auto before = json::get_int(s.rest(), {"observedGeneration"}, -1);
  if (before != s.generation()) {
    progress(s, false, "processing object: new generation " + std::to_string(before) + " -> " + std::to_string(s.generation()));
    KUBEOPERA_CO_CHECK(co_await s.patch());
  } else if (asked != json::get_string(s.rest(), {"lastHandledReconcileAt"})) {
    progress(s, false, "reconciliation in progress");
    KUBEOPERA_CO_CHECK(co_await s.patch());
  }
  co_return co_await sync(s, key, asked);
}

task<std::optional<duration>> source_controller::sync(flux_status& s, object_key key, std::string handled) {
  bool had = json::find(s.rest(), {"artifact"}) != nullptr;
  if (!had) {
    progress(s, true, "building artifact");
    KUBEOPERA_CO_CHECK(co_await s.patch());
  }
  auto timeout = parse_go_duration(json::get_string(s.obj(), {"spec", "timeout"}, "60s")).value_or(60s);
  auto work = fetch(s.obj(), key);
  auto got = co_await with_deadline<fetched>(timeout, std::move(work));
  if (!got && got.error().code() == errc::cancelled) co_return got.error();
  if (!got) co_return co_await failed(s, key, got.error().message(), handled);
  failures_.erase(key);
  bool failed_before = last_failure_.erase(key) > 0;
  s.drop("FetchFailed");
  bool fresh = json::get_string(s.rest(), {"artifact", "revision"}) != got->revision;
  if (fresh) {
    progress(s, true, "building artifact: new upstream revision '" + got->revision + "'");
    if (had) s.set("ArtifactOutdated", "True", "NewRevision", "new upstream revision '" + got->revision + "'");
    KUBEOPERA_CO_CHECK(co_await s.patch());
    KUBEOPERA_CO_TRY(auto artifact, artifact_of(key, *got));
    s.rest()["artifact"] = std::move(artifact);
    auto info = sources_.stores[key]->read_commit(got->commit);
    auto subject = info ? info->message.substr(0, info->message.find('\n')) : got->commit;
    tell(s, "NewArtifact", "stored artifact for commit '" + subject + "'");
  } else {
    if (failed_before) tell(s, "Succeeded", "stored artifact for commit '" + got->revision + "'");
    tell(s, "GitOperationSucceeded", "no changes since last reconciliation: observed revision '" + got->revision + "'");
  }
  auto message = "stored artifact for revision '" + got->revision + "'";
  s.drop("Reconciling");
  s.drop("ArtifactOutdated");
  s.set("Ready", "True", "Succeeded", message);
  s.set("ArtifactInStorage", "True", "Succeeded", message);
  s.rest()["observedGeneration"] = s.generation();
  if (!handled.empty()) s.rest()["lastHandledReconcileAt"] = handled;
  KUBEOPERA_CO_CHECK(co_await s.patch());
  co_return parse_go_duration(json::get_string(s.obj(), {"spec", "interval"}, "10m"));
}

task<std::optional<duration>> source_controller::failed(flux_status& s, object_key key, std::string message,
                                                        std::string handled) {
  std::string progress_message = "reconciliation in progress";
  if (const auto* c = s.find("Reconciling")) progress_message = std::string(json::get_string(*c, {"message"}));
  s.set("Reconciling", "True", "ProgressingWithRetry", progress_message);
  s.set("Ready", "False", "GitOperationFailed", message);
  s.set("FetchFailed", "True", "GitOperationFailed", message);
  if (!handled.empty()) s.rest()["lastHandledReconcileAt"] = handled;
  if (last_failure_[key] != message) tell(s, "GitOperationFailed", message, true);
  last_failure_[key] = message;
  KUBEOPERA_CO_CHECK(co_await s.patch());
  int n = failures_[key]++;
  co_return std::optional<duration>(std::min<duration>(750ms * (1 << std::min(n, 10)), 60s));
}

}  // namespace

std::unique_ptr<controller> make_source_controller(environment& env, fetched_sources& sources) {
  return std::make_unique<source_controller>(env, sources);
}

}  // namespace kubeopera::inline v1::testing::sim
