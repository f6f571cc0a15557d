// Manifests from files, and the health of what was applied.
#include "src/testing/flux_build.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/read.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace kubeopera::inline v1::testing::sim {

namespace {

error build_error(std::string message) { return {errc::invalid_argument, "BuildFailed", std::move(message)}; }

bool is_yaml(std::string_view path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

bool is_kustomization(std::string_view path) {
  auto name = path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
  return name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization";
}

std::string joined(const std::string& dir, std::string_view name) {
  std::vector<std::string> parts;
  std::string text = dir.empty() ? std::string(name) : dir + "/" + std::string(name);
  std::size_t at = 0;
  while (at <= text.size()) {
    auto end = std::min(text.find('/', at), text.size());
    auto part = text.substr(at, end - at);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  std::string out;
  for (const auto& p : parts) out += (out.empty() ? "" : "/") + p;
  return out;
}

constexpr std::string_view first_kinds[] = {
    "Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "StorageClass"};
constexpr std::string_view kind_order[] = {"Namespace",
                                           "CustomResourceDefinition",
                                           "StorageClass",
                                           "PriorityClass",
                                           "ClusterRole",
                                           "ClusterRoleBinding",
                                           "ResourceQuota",
                                           "LimitRange",
                                           "ServiceAccount",
                                           "Role",
                                           "RoleBinding",
                                           "ConfigMap",
                                           "Secret",
                                           "NetworkPolicy",
                                           "Service",
                                           "PersistentVolumeClaim",
                                           "Deployment",
                                           "Job",
                                           "CronJob",
                                           "PodDisruptionBudget",
                                           "HorizontalPodAutoscaler",
                                           "Ingress"};

std::size_t order_of(const object& o) {
  auto kind = json::get_string(o, {"kind"});
  auto it = std::find(std::begin(kind_order), std::end(kind_order), kind);
  return static_cast<std::size_t>(it - std::begin(kind_order));
}

// Reads files and directories into objects.
class builder {
 public:
  builder(const source_files& files, std::string root) : root_(std::move(root)) {
    for (const auto& [path, content] : files) files_[path] = content;
  }

  result<void> directory(const std::string& dir) {
    for (std::string_view name : {"kustomization.yaml", "kustomization.yml", "Kustomization"}) {
      if (files_.contains(joined(dir, name))) return overlay(dir, joined(dir, name));
    }
    // Flux's generated kustomization: every manifest below, directories with one of their own as a whole.
    std::set<std::string> own;
    for (const auto& [path, content] : files_) {
      auto parent = path.rfind('/') == std::string::npos ? std::string() : path.substr(0, path.rfind('/'));
      if (is_kustomization(path) && parent != dir) own.insert(parent);
    }
    auto prefix = dir.empty() ? std::string() : dir + "/";
    std::set<std::string> done;
    for (const auto& [path, content] : files_) {
      if (!path.starts_with(prefix)) continue;
      std::string inside;
      for (const auto& o : own) {
        if (path.starts_with(o + "/") && (inside.empty() || o.size() < inside.size()) && o.starts_with(prefix)) inside = o;
      }
      if (!inside.empty()) {
        if (done.insert(inside).second) KUBEOPERA_CHECK(directory(inside));
      } else if (is_yaml(path)) {
        KUBEOPERA_CHECK(file(path));
      }
    }
    return {};
  }

  std::vector<object> objects;

 private:
  result<void> overlay(const std::string& dir, const std::string& path) {
    if (!visiting_.insert(path).second) return build_error("accumulating resources: cycle at " + root_ + "/" + path);
    auto read = yaml::read_as_go(files_[path]);
    if (!read || !read->is_object()) return build_error("invalid Kustomization: " + root_ + "/" + path);
    const auto& k = read->get_object();
    for (const auto& member : k) {
      static constexpr std::string_view known[] = {"apiVersion", "kind", "metadata", "resources", "namespace"};
      if (std::find(std::begin(known), std::end(known), std::string_view(member.key())) == std::end(known)) {
        return build_error("kustomization field " + std::string(member.key()) + " is not simulated");
      }
    }
    auto from = objects.size();
    if (const auto* resources = json::get_array(k, {"resources"})) {
      for (const auto& r : *resources) {
        auto target = joined(dir, json::as_view(r));
        if (files_.contains(target)) {
          KUBEOPERA_CHECK(file(target));
          continue;
        }
        bool found = std::any_of(files_.begin(), files_.end(), [&](const auto& f) { return f.first.starts_with(target + "/"); });
        if (!found) {
          return build_error("accumulating resources: accumulation err='accumulating resources from '" +
                             std::string(json::as_view(r)) + "': open " + root_ + "/" + target + ": no such file or directory'");
        }
        KUBEOPERA_CHECK(directory(target));
      }
    }
    if (auto ns = json::get_string(k, {"namespace"}); !ns.empty()) {
      for (auto i = from; i < objects.size(); ++i) {
        if (!is_cluster_definition(objects[i])) json::ensure_object(objects[i], "metadata")["namespace"] = ns;
      }
    }
    visiting_.erase(path);
    return {};
  }

  // The YAML reader's words as Go's YAML says them.
  static std::string go_words(const error& e) {
    auto m = e.message();
    for (std::string_view prefix : {"error converting YAML to JSON: ", "yaml: ", "not YAML: "}) {
      if (m.starts_with(prefix)) m.erase(0, prefix.size());
    }
    if (auto column = m.find(", column "); column != std::string::npos && m.starts_with("line ")) {
      m.erase(column, m.find(':', column) - column);
    }
    for (auto [ours, theirs] :
         {std::pair<std::string_view, std::string_view>{"end of sequence flow not found", "did not find expected ',' or ']'"},
          {"end of map flow not found", "did not find expected ',' or '}'"}}) {
      if (auto at = m.find(ours); at != std::string::npos) m.replace(at, ours.size(), theirs);
    }
    return "yaml: " + m;
  }

  result<void> file(const std::string& path) {
    const auto& text = files_[path];
    std::size_t at = 0;
    while (at <= text.size()) {
      auto end = text.find("\n---", at);
      auto part = text.substr(at, end == std::string::npos ? std::string::npos : end + 1 - at);
      at = end == std::string::npos ? text.size() + 1 : end + 1;
      if (part.starts_with("---")) part = part.find('\n') == std::string::npos ? std::string() : part.substr(part.find('\n') + 1);
      auto read = yaml::read_as_go(part);
      if (!read) {
        return build_error("failed to decode Kubernetes YAML from " + root_ + "/" + path +
                           ": MalformedYAMLError: " + go_words(read.error()));
      }
      if (read->is_null()) continue;
      KUBEOPERA_CHECK(add(*read, path));
    }
    return {};
  }

  result<void> add(const value& v, const std::string& path) {
    const auto* o = v.if_object();
    if (!o || json::get_string(*o, {"kind"}).empty() || json::get_string(*o, {"apiVersion"}).empty()) {
      return build_error("failed to decode Kubernetes YAML from " + root_ + "/" + path + ": missing Resource metadata");
    }
    if (json::get_string(*o, {"kind"}).ends_with("List") && json::get_array(*o, {"items"})) {
      for (const auto& item : *json::get_array(*o, {"items"})) KUBEOPERA_CHECK(add(item, path));
      return {};
    }
    if (kube::name_of(*o).empty()) {
      return build_error("failed to decode Kubernetes YAML from " + root_ + "/" + path + ": missing metadata.name in object");
    }
    auto id = std::string(json::get_string(*o, {"apiVersion"})) + " " + subject_of(*o);
    if (!ids_.insert(id).second) return build_error("may not add resource with an already registered id: " + subject_of(*o));
    objects.push_back(*o);
    return {};
  }

  std::map<std::string, std::string> files_;
  std::string root_;
  std::set<std::string> visiting_, ids_;
};

health deployment_health(const object& o) {
  auto wanted = json::get_int(o, {"spec", "replicas"}, 1);
  auto at = [&](std::string_view key) { return json::get_int(o, {"status", key}); };
  const auto* progressing = kube::find_condition(o, "Progressing");
  if (progressing && json::get_string(*progressing, {"reason"}) == "ProgressDeadlineExceeded") return health::failed;
  if (at("updatedReplicas") < wanted || at("replicas") > at("updatedReplicas") || at("readyReplicas") < wanted ||
      at("availableReplicas") < at("updatedReplicas")) {
    return health::in_progress;
  }
  if (progressing && (json::get_string(*progressing, {"reason"}) != "NewReplicaSetAvailable" ||
                      json::get_string(*progressing, {"status"}) != "True")) {
    return health::in_progress;
  }
  return kube::condition_true(o, "Available") ? health::current : health::in_progress;
}

health by_conditions(const object& o) {
  if (kube::condition_true(o, "Stalled")) return health::failed;
  if (kube::condition_true(o, "Reconciling")) return health::in_progress;
  const auto* ready = kube::find_condition(o, "Ready");
  if (!ready) return health::current;
  return json::get_string(*ready, {"status"}) == "True" ? health::current : health::in_progress;
}

}  // namespace

result<built> build_manifests(const source_files& files, const std::string& root) {
  builder b(files, root);
  KUBEOPERA_CHECK(b.directory(""));
  built out;
  std::string text;
  for (const auto& o : b.objects) text += json::write_canonical(value(o)) + "\n";
  out.digest = "sha256:" + crypto::sha256_hex(text);
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < b.objects.size(); ++i) order.emplace_back(order_of(b.objects[i]), i);
  std::sort(order.begin(), order.end());
  for (const auto& [rank, i] : order) out.objects.push_back(std::move(b.objects[i]));
  return out;
}

bool is_cluster_definition(const object& o) {
  auto kind = json::get_string(o, {"kind"});
  return std::find(std::begin(first_kinds), std::end(first_kinds), kind) != std::end(first_kinds);
}

std::string_view to_string(health h) noexcept {
  switch (h) {
    case health::current:
      return "Current";
    case health::in_progress:
      return "InProgress";
    case health::failed:
      return "Failed";
    case health::terminating:
      return "Terminating";
    case health::not_found:
      return "NotFound";
    case health::unknown:
      return "Unknown";
  }
  return "Unknown";
}

health health_of(const object& o) {
  if (kube::being_deleted(o)) return health::terminating;
  const auto* observed = json::find(o, {"status", "observedGeneration"});
  if (observed && json::get_int(o, {"status", "observedGeneration"}) < kube::generation_of(o)) return health::in_progress;
  auto kind = json::get_string(o, {"kind"});
  auto api = json::get_string(o, {"apiVersion"});
  if (kind == "Deployment" && api == "apps/v1") return observed ? deployment_health(o) : health::in_progress;
  if (kind == "ReplicaSet") {
    auto wanted = json::get_int(o, {"spec", "replicas"}, 1);
    return json::get_int(o, {"status", "availableReplicas"}) >= wanted ? health::current : health::in_progress;
  }
  if (kind == "Pod" && api == "v1") {
    auto phase = json::get_string(o, {"status", "phase"});
    if (phase == "Succeeded") return health::current;
    if (phase == "Failed") return health::failed;
    return pod_ready(o) ? health::current : health::in_progress;
  }
  if (kind == "Job") {
    if (kube::condition_true(o, "Failed")) return health::failed;
    return json::find(o, {"status", "startTime"}) ? health::current : health::in_progress;
  }
  if (kind == "PersistentVolumeClaim")
    return json::get_string(o, {"status", "phase"}) == "Bound" ? health::current : health::in_progress;
  if (kind == "PodDisruptionBudget") {
    bool enough = json::get_int(o, {"status", "currentHealthy"}) >= json::get_int(o, {"status", "desiredHealthy"});
    return observed && enough ? health::current : health::in_progress;
  }
  if (kind == "Service" && json::get_string(o, {"spec", "type"}) == "LoadBalancer") {
    return json::get_array(o, {"status", "loadBalancer", "ingress"}) ? health::current : health::in_progress;
  }
  if (kind == "CustomResourceDefinition") return kube::condition_true(o, "Established") ? health::current : health::in_progress;
  return by_conditions(o);
}

std::string subject_of(const object& o) {
  auto ns = std::string(kube::namespace_of(o));
  return std::string(json::get_string(o, {"kind"})) + "/" + (ns.empty() ? "" : ns + "/") + std::string(kube::name_of(o));
}

}  // namespace kubeopera::inline v1::testing::sim
