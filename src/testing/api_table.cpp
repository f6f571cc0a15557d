// Tables: the columns and cells that kubectl prints.
#include "src/testing/api_crd.hpp"
#include "src/testing/api_selector.hpp"
#include "src/testing/api_state.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

const char* const name_words =
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to "
    "request the "
    "generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration "
    "definition. "
    "Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const char* const age_words =
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set "
    "in "
    "happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is "
    "in "
    "UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

using cell_maker = json::value (*)(const json::object&, system_time);

struct column {
  const char* name;
  int priority;
  cell_maker cell;
  const char* description = "";
};
struct kind_columns {
  const char* plural;
  std::vector<column> columns;  ///< between Name and nothing; Age is one of them
};

// A span as people write it: 5s, 3m20s, 4h, 12d.
std::string human(std::chrono::seconds span) {
  auto s = span.count();
  if (s < -1) return "<invalid>";
  if (s <= 0) return "0s";
  auto two = [](std::int64_t a, const char* x, std::int64_t b, const char* y) {
    return std::to_string(a) + x + (b ? std::to_string(b) + y : std::string());
  };
  if (s < 120) return std::to_string(s) + "s";
  auto m = s / 60, h = m / 60, d = h / 24;
  if (m < 10) return two(m, "m", s % 60, "s");
  if (m < 180) return std::to_string(m) + "m";
  if (h < 8) return two(h, "h", m % 60, "m");
  if (h < 48) return std::to_string(h) + "h";
  if (h < 192) return two(d, "d", h % 24, "h");
  if (d < 730) return std::to_string(d) + "d";
  if (d < 2920) return two(d / 365, "y", d % 365, "d");
  return std::to_string(d / 365) + "y";
}

std::string since(std::string_view text, system_time now) {
  auto t = parse_rfc3339(text);
  if (!t) return "<unknown>";
  return human(std::chrono::duration_cast<std::chrono::seconds>(now - *t));
}

std::string at(const json::object& o, std::initializer_list<std::string_view> path) {
  return std::string(json::get_string(o, path));
}
std::string or_none(std::string s) { return s.empty() ? "<none>" : s; }
std::string number(const json::object& o, std::initializer_list<std::string_view> path) {
  return std::to_string(json::get_int(o, path));
}

std::size_t size_at(const json::object& o, std::initializer_list<std::string_view> path) {
  const auto* v = json::find(o, path);
  if (!v) return 0;
  if (const auto* m = v->if_object()) return m->size();
  const auto* a = v->if_array();
  return a ? a->size() : 0;
}

const json::array& items(const json::object& o, std::initializer_list<std::string_view> path) {
  static const json::array none;
  const auto* a = json::get_array(o, path);
  return a ? *a : none;
}

template <class F>
std::string joined(const json::array& a, F f, const char* glue = ",") {
  std::string out;
  for (const auto& v : a) {
    const auto* o = v.if_object();
    std::string s = o ? f(*o) : std::string(json::as_view(v));
    if (!s.empty()) out += (out.empty() ? "" : glue) + s;
  }
  return out;
}

json::value age(const json::object& o, system_time now) {
  return json::value(since(json::get_string(o, {"metadata", "creationTimestamp"}), now));
}

std::string pod_phase(const json::object& o) {
  std::string reason = at(o, {"status", "reason"});
  if (reason.empty()) reason = at(o, {"status", "phase"});
  const auto& statuses = items(o, {"status", "containerStatuses"});
  bool running = false;
  for (auto it = statuses.rbegin(); it != statuses.rend(); ++it) {
    const auto* c = it->if_object();
    if (!c) continue;
    std::string waiting = at(*c, {"state", "waiting", "reason"}), ended = at(*c, {"state", "terminated", "reason"});
    if (!waiting.empty()) {
      reason = waiting;
    } else if (!ended.empty()) {
      reason = ended;
    } else if (json::find(*c, {"state", "terminated"})) {
      reason = "ExitCode:" + number(*c, {"state", "terminated", "exitCode"});
    } else if (json::get_bool(*c, {"ready"}) && json::find(*c, {"state", "running"})) {
      running = true;
    }
  }
  if (reason == "Completed" && running) reason = "Running";
  if (json::find(o, {"metadata", "deletionTimestamp"})) reason = "Terminating";
  return reason;
}

std::string pod_ready(const json::object& o) {
  std::size_t ready = 0;
  for (const auto& c : items(o, {"status", "containerStatuses"})) {
    if (c.is_object() && json::get_bool(c.get_object(), {"ready"})) ++ready;
  }
  return std::to_string(ready) + "/" + std::to_string(size_at(o, {"spec", "containers"}));
}

std::string pod_restarts(const json::object& o, system_time now) {
  std::int64_t count = 0;
  std::string last;
  for (const auto& c : items(o, {"status", "containerStatuses"})) {
    const auto* x = c.if_object();
    if (!x) continue;
    count += json::get_int(*x, {"restartCount"});
    last = std::max(last, at(*x, {"lastState", "terminated", "finishedAt"}));
  }
  return std::to_string(count) + (count > 0 && !last.empty() ? " (" + since(last, now) + " ago)" : "");
}

std::string service_ports(const json::object& o) {
  return or_none(joined(items(o, {"spec", "ports"}), [](const json::object& p) {
    std::string node = json::get_int(p, {"nodePort"}) ? ":" + number(p, {"nodePort"}) : "";
    return number(p, {"port"}) + node + "/" + at(p, {"protocol"});
  }));
}

std::string load_balancer(const json::object& o) {
  return joined(items(o, {"status", "loadBalancer", "ingress"}),
                [](const json::object& i) { return at(i, {"ip"}).empty() ? at(i, {"hostname"}) : at(i, {"ip"}); });
}

std::string external_ip(const json::object& o) {
  std::string type = at(o, {"spec", "type"});
  if (type == "LoadBalancer") {
    std::string lb = load_balancer(o);
    return lb.empty() ? "<pending>" : lb;
  }
  return type == "ExternalName" ? at(o, {"spec", "externalName"}) : "<none>";
}

std::string node_status(const json::object& o) {
  std::string out = "Unknown";
  for (const auto& c : items(o, {"status", "conditions"})) {
    if (c.is_object() && at(c.get_object(), {"type"}) == "Ready")
      out = at(c.get_object(), {"status"}) == "True" ? "Ready" : "NotReady";
  }
  return json::get_bool(o, {"spec", "unschedulable"}) ? out + ",SchedulingDisabled" : out;
}

std::string hpa_targets(const json::object& o) {
  std::string out;
  const auto& current = items(o, {"status", "currentMetrics"});
  const auto& wanted = items(o, {"spec", "metrics"});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto* m = wanted[i].if_object();
    if (!m) continue;
    const auto* now = i < current.size() ? current[i].if_object() : nullptr;
    std::string name = at(*m, {"resource", "name"});
    const auto* value = now ? json::find(*now, {"resource", "current", "averageUtilization"}) : nullptr;
    std::string text = (value && value->is_int64() ? std::to_string(value->get_int64()) + "%" : "<unknown>") + "/" +
                       number(*m, {"resource", "target", "averageUtilization"}) + "%";
    out += (out.empty() ? "" : ", ") + name + ": " + text;
  }
  return or_none(out);
}

std::string job_status(const json::object& o) {
  for (const auto& c : items(o, {"status", "conditions"})) {
    const auto* x = c.if_object();
    if (x && at(*x, {"status"}) == "True" && (at(*x, {"type"}) == "Complete" || at(*x, {"type"}) == "Failed"))
      return at(*x, {"type"});
  }
  return json::get_bool(o, {"spec", "suspend"}) ? "Suspended" : "Running";
}

std::string quota_text(const json::object& o, bool limits) {
  std::string out;
  const auto* hard = json::get_object(o, {"status", "hard"});
  if (!hard) return out;
  for (const auto& kv : *hard) {
    bool is_limit = kv.key().starts_with("limits.");
    if (is_limit != limits) continue;
    out += (out.empty() ? "" : ", ") + std::string(kv.key()) + ": " + at(o, {"status", "used", kv.key()}) + "/" +
           std::string(json::as_view(kv.value()));
  }
  return out;
}

std::string endpoint_list(const json::object& o) {
  std::vector<std::string> all;
  for (const auto& s : items(o, {"subsets"})) {
    if (!s.is_object()) continue;
    const auto& ports = items(s.get_object(), {"ports"});
    for (const auto& a : items(s.get_object(), {"addresses"})) {
      if (!a.is_object()) continue;
      for (const auto& p : ports) {
        if (p.is_object()) all.push_back(at(a.get_object(), {"ip"}) + ":" + number(p.get_object(), {"port"}));
      }
    }
  }
  std::string out;
  for (std::size_t i = 0; i < all.size() && i < 3; ++i) out += (i ? "," : "") + all[i];
  if (all.size() > 3) out += " + " + std::to_string(all.size() - 3) + " more...";
  return or_none(out);
}

std::string ingress_hosts(const json::object& o) {
  std::string hosts = joined(items(o, {"spec", "rules"}), [](const json::object& r) { return at(r, {"host"}); });
  return hosts.empty() ? "*" : hosts;
}

std::string container_names(const json::object& o) {
  return joined(items(o, {"spec", "template", "spec", "containers"}), [](const json::object& c) { return at(c, {"name"}); });
}
std::string container_images(const json::object& o) {
  return joined(items(o, {"spec", "template", "spec", "containers"}), [](const json::object& c) { return at(c, {"image"}); });
}

std::string joined_pairs(const json::object* m) {
  std::string out;
  if (!m) return out;
  for (const auto& kv : *m)
    out += (out.empty() ? "" : ",") + std::string(kv.key()) + "=" + std::string(json::as_view(kv.value()));
  return out;
}

std::string int_or_text(const json::value* v) {
  if (!v || v->is_null()) return "N/A";
  return v->is_string() ? std::string(json::as_view(*v)) : json::write(*v);
}

std::string object_word(const json::object& o) {
  std::string kind = at(o, {"involvedObject", "kind"});
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return kind + "/" + at(o, {"involvedObject", "name"});
}

#define CELL(expr)                                            \
  [](const json::object& o, system_time now) -> json::value { \
    static_cast<void>(now);                                   \
    static_cast<void>(o);                                     \
    return json::value(expr);                                 \
  }

const std::vector<kind_columns>& column_table() {
  static const std::vector<kind_columns> all = {
      {"configmaps",
       {{"Data", 0, CELL(size_at(o, {"data"}) + size_at(o, {"binaryData"})),
         "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with "
         "non-UTF-8 "
         "byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData "
         "field, "
         "this is enforced during validation process."},
        {"Age", 0, age, age_words}}},
      {"secrets", {{"Type", 0, CELL(at(o, {"type"}))}, {"Data", 0, CELL(size_at(o, {"data"}))}, {"Age", 0, age, age_words}}},
      {"namespaces", {{"Status", 0, CELL(at(o, {"status", "phase"}))}, {"Age", 0, age, age_words}}},
      {"pods",
       {{"Ready", 0, CELL(pod_ready(o)), "The aggregate readiness state of this pod for accepting traffic."},
        {"Status", 0, CELL(pod_phase(o)), "The aggregate status of the containers in this pod."},
        {"Restarts", 0, CELL(pod_restarts(o, now)),
         "The number of times the containers in this pod have been restarted and when the last container in this pod has "
         "restarted."},
        {"Age", 0, age, age_words},
        {"IP", 1, CELL(or_none(at(o, {"status", "podIP"}))),
         "podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated."},
        {"Node", 1, CELL(or_none(at(o, {"spec", "nodeName"}))),
         "NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by the "
         "scheduler defined in "
         "schedulerName. Once this field is set, the kubelet for this node becomes responsible for the lifecycle of this pod. "
         "This field "
         "should not be used to express a desire for the pod to be scheduled on a specific node. "
         "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename"},
        {"Nominated Node", 1, CELL(or_none(at(o, {"status", "nominatedNodeName"}))),
         "nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right away as "
         "preemption "
         "victims receive their graceful termination periods. This field does not guarantee that the pod will be scheduled on "
         "this node. "
         "Scheduler may decide to place the pod elsewhere if other nodes become available sooner. Scheduler may also decide to "
         "give the "
         "resources on this node to a higher priority pod that is created after preemption. As a result, this field may be "
         "different than "
         "PodSpec.nodeName when the pod is scheduled."},
        {"Readiness Gates", 1, CELL("<none>"),
         "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its containers are "
         "ready AND all "
         "conditions specified in the readiness gates have status equal to \"True\" More info: "
         "https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates"}}},
      {"deployments",
       {{"Ready", 0, CELL(number(o, {"status", "readyReplicas"}) + "/" + number(o, {"spec", "replicas"})),
         "Number of the pod with ready state"},
        {"Up-to-date", 0, CELL(json::get_int(o, {"status", "updatedReplicas"})),
         "Total number of non-terminating pods targeted by this deployment that have the desired template spec."},
        {"Available", 0, CELL(json::get_int(o, {"status", "availableReplicas"})),
         "Total number of available non-terminating pods (ready for at least minReadySeconds) targeted by this deployment."},
        {"Age", 0, age, age_words},
        {"Containers", 1, CELL(container_names(o)), "Names of each container in the template."},
        {"Images", 1, CELL(container_images(o)), "Images referenced by each container in the template."},
        {"Selector", 1, CELL(format_label_selector(json::get_object(o, {"spec", "selector"}))),
         "Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the ones affected by this "
         "deployment. It must "
         "match the pod template's labels."}}},
      {"replicasets",
       {{"Desired", 0, CELL(json::get_int(o, {"spec", "replicas"}))},
        {"Current", 0, CELL(json::get_int(o, {"status", "replicas"}))},
        {"Ready", 0, CELL(json::get_int(o, {"status", "readyReplicas"}))},
        {"Age", 0, age, age_words},
        {"Containers", 1, CELL(container_names(o))},
        {"Images", 1, CELL(container_images(o))},
        {"Selector", 1, CELL(format_label_selector(json::get_object(o, {"spec", "selector"})))}}},
      {"statefulsets",
       {{"Ready", 0, CELL(number(o, {"status", "readyReplicas"}) + "/" + number(o, {"spec", "replicas"}))},
        {"Age", 0, age, age_words},
        {"Containers", 1, CELL(container_names(o))},
        {"Images", 1, CELL(container_images(o))}}},
      {"services",
       {{"Type", 0, CELL(at(o, {"spec", "type"}))},
        {"Cluster-IP", 0, CELL(or_none(at(o, {"spec", "clusterIP"})))},
        {"External-IP", 0, CELL(external_ip(o))},
        {"Port(s)", 0, CELL(service_ports(o))},
        {"Age", 0, age, age_words},
        {"Selector", 1, CELL(or_none(joined_pairs(json::get_object(o, {"spec", "selector"}))))}}},
      {"ingresses",
       {{"Class", 0, CELL(or_none(at(o, {"spec", "ingressClassName"})))},
        {"Hosts", 0, CELL(ingress_hosts(o))},
        {"Address", 0, CELL(load_balancer(o))},
        {"Ports", 0, CELL(size_at(o, {"spec", "tls"}) ? "80, 443" : "80")},
        {"Age", 0, age, age_words}}},
      {"endpoints", {{"Endpoints", 0, CELL(endpoint_list(o))}, {"Age", 0, age, age_words}}},
      {"serviceaccounts", {{"Secrets", 0, CELL(size_at(o, {"secrets"}))}, {"Age", 0, age, age_words}}},
      {"nodes",
       {{"Status", 0, CELL(node_status(o))},
        {"Roles", 0, CELL("<none>")},
        {"Age", 0, age, age_words},
        {"Version", 0, CELL(at(o, {"status", "nodeInfo", "kubeletVersion"}))}}},
      {"persistentvolumeclaims",
       {{"Status", 0, CELL(at(o, {"status", "phase"}))},
        {"Volume", 0, CELL(at(o, {"spec", "volumeName"}))},
        {"Capacity", 0, CELL(at(o, {"status", "capacity", "storage"}))},
        {"Access Modes", 0, CELL(joined(items(o, {"spec", "accessModes"}), [](const json::object&) { return std::string(); }))},
        {"StorageClass", 0, CELL(at(o, {"spec", "storageClassName"}))},
        {"Age", 0, age, age_words}}},
      {"resourcequotas",
       {{"Request", 0, CELL(quota_text(o, false))}, {"Limit", 0, CELL(quota_text(o, true))}, {"Age", 0, age, age_words}}},
      {"jobs",
       {{"Status", 0, CELL(job_status(o))},
        {"Completions", 0,
         CELL(number(o, {"status", "succeeded"}) + "/" + std::to_string(json::get_int(o, {"spec", "completions"}, 1)))},
        {"Age", 0, age, age_words}}},
      {"cronjobs",
       {{"Schedule", 0, CELL(at(o, {"spec", "schedule"}))},
        {"Timezone", 0, CELL(or_none(at(o, {"spec", "timeZone"})))},
        {"Suspend", 0, CELL(json::get_bool(o, {"spec", "suspend"}) ? "True" : "False")},
        {"Active", 0, CELL(size_at(o, {"status", "active"}))},
        {"Last Schedule", 0,
         CELL(at(o, {"status", "lastScheduleTime"}).empty() ? "<none>" : since(at(o, {"status", "lastScheduleTime"}), now))},
        {"Age", 0, age, age_words}}},
      {"horizontalpodautoscalers",
       {{"Reference", 0, CELL(at(o, {"spec", "scaleTargetRef", "kind"}) + "/" + at(o, {"spec", "scaleTargetRef", "name"}))},
        {"Targets", 0, CELL(hpa_targets(o))},
        {"MinPods", 0, CELL(std::to_string(json::get_int(o, {"spec", "minReplicas"}, 1)))},
        {"MaxPods", 0, CELL(json::get_int(o, {"spec", "maxReplicas"}))},
        {"Replicas", 0, CELL(json::get_int(o, {"status", "currentReplicas"}))},
        {"Age", 0, age, age_words}}},
      {"poddisruptionbudgets",
       {{"Min Available", 0, CELL(int_or_text(json::find(o, {"spec", "minAvailable"})))},
        {"Max Unavailable", 0, CELL(int_or_text(json::find(o, {"spec", "maxUnavailable"})))},
        {"Allowed Disruptions", 0, CELL(json::get_int(o, {"status", "disruptionsAllowed"}))},
        {"Age", 0, age, age_words}}},
      {"networkpolicies",
       {{"Pod-Selector", 0, CELL(or_none(format_label_selector(json::get_object(o, {"spec", "podSelector"}))))},
        {"Age", 0, age, age_words}}},
      {"leases", {{"Holder", 0, CELL(at(o, {"spec", "holderIdentity"}))}, {"Age", 0, age, age_words}}},
      {"events",
       {{"Last Seen", 0,
         CELL(at(o, {"lastTimestamp"}).empty() ? since(at(o, {"eventTime"}), now) : since(at(o, {"lastTimestamp"}), now))},
        {"Type", 0, CELL(at(o, {"type"}))},
        {"Reason", 0, CELL(at(o, {"reason"}))},
        {"Object", 0, CELL(object_word(o))},
        {"Message", 0, CELL(at(o, {"message"}))},
        {"Count", 1, CELL(json::get_int(o, {"count"}))},
        {"Name", 1, CELL(at(o, {"metadata", "name"}))}}},
      {"customresourcedefinitions", {{"Created At", 0, CELL(at(o, {"metadata", "creationTimestamp"}))}}},
  };
  return all;
}

const std::vector<column>& columns_of(const kind_info& kind) {
  static const std::vector<column> plain = {{"Age", 0, age, age_words}};
  for (const auto& k : column_table()) {
    if (kind.plural == k.plural) return k.columns;
  }
  return plain;
}

json::object definition(std::string_view name, std::string_view type, std::string_view format, std::string_view description,
                        int priority) {
  json::object d;
  d["name"] = name;
  d["type"] = type;
  d["format"] = format;
  d["description"] = description;
  d["priority"] = priority;
  return d;
}

json::value custom_cell(const printer_column& c, const json::value& o, system_time now) {
  auto found = json_path(o, c.path);
  if (found.empty()) return c.type == "date" ? json::value("<unknown>") : json::value(nullptr);
  const json::value& v = *found.front();
  if (c.type == "date") return json::value(since(json::as_view(v), now));
  if (c.type == "string" && !v.is_string()) return json::value(json::write(v));
  if (found.size() > 1 && c.type == "string") {
    std::string all;
    for (const auto* x : found) all += (all.empty() ? "" : ",") + std::string(json::as_view(*x));
    return json::value(all);
  }
  return v;
}

}  // namespace

json::array table_columns(const kind_info& kind) {
  json::array out;
  bool named_last = kind.is("", "events");  // people look at what happened, not at what the event is called
  if (!named_last) out.push_back(definition("Name", "string", "name", name_words, 0));
  if (kind.custom) {
    for (const auto& c : kind.custom->columns) {
      std::string words =
          c.description.empty() ? "Custom resource definition column (in JSONPath format): " + c.path : c.description;
      if (c.path == ".metadata.creationTimestamp" && c.description.empty()) words = age_words;
      out.push_back(definition(c.name, c.type, c.format, words, c.priority));
    }
    return out;
  }
  for (const auto& c : columns_of(kind)) out.push_back(definition(c.name, "string", "", c.description, c.priority));
  return out;
}

json::array table_cells(const kind_info& kind, const json::object& o, system_time now) {
  json::array out;
  if (!kind.is("", "events")) out.emplace_back(json::get_string(o, {"metadata", "name"}));
  if (kind.custom) {
    json::value v(o);
    for (const auto& c : kind.custom->columns) out.push_back(custom_cell(c, v, now));
    return out;
  }
  for (const auto& c : columns_of(kind)) out.push_back(c.cell(o, now));
  return out;
}

json::object make_table(const server& s, const request& r, const std::vector<json::object>& objects, bool columns) {
  json::object out;
  out["kind"] = "Table";
  out["apiVersion"] = "meta.k8s.io/" + (r.as_version.empty() ? "v1" : r.as_version);
  auto& meta = json::ensure_object(out, "metadata");
  if (objects.size() == 1) meta["resourceVersion"] = json::get_string(objects[0], {"metadata", "resourceVersion"});
  out["columnDefinitions"] = columns ? json::value(table_columns(*r.kind)) : json::value(nullptr);
  auto& rows = json::ensure_array(out, "rows");
  system_time now = s.options.time->now();
  for (const auto& o : objects) {
    json::object row;
    row["cells"] = table_cells(*r.kind, o, now);
    if (r.include_object == "Object") {
      row["object"] = o;
    } else if (r.include_object != "None") {
      row["object"] = partial_metadata(o);
    }
    rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace kubeopera::inline v1::testing::api
