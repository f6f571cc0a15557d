// Rolling update arithmetic.
#include "src/testing/sim_rollout.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace kubeopera::inline v1::testing::sim {

namespace {

std::vector<std::size_t> by_age(const std::vector<rs_counts>& sets) {
  std::vector<std::size_t> order(sets.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return std::tie(sets[a].created, sets[a].name) < std::tie(sets[b].created, sets[b].name); });
  return order;
}

template <class F>
int sum(const std::vector<rs_counts>& sets, F&& f) {
  int total = 0;
  for (const auto& s : sets) total += f(s);
  return total;
}

value without_hash(const value& pod_template) {
  value copy = pod_template;
  if (!copy.is_object()) return copy;
  auto& o = copy.get_object();
  if (auto* metadata = o.if_contains("metadata"); metadata && metadata->is_object()) {
    metadata->get_object().erase("creationTimestamp");
    if (auto* labels = metadata->get_object().if_contains("labels"); labels && labels->is_object()) {
      labels->get_object().erase("pod-template-hash");
    }
  }
  return copy;
}

}  // namespace

rollout_spec rollout_spec_of(const object& d) {
  rollout_spec out;
  out.replicas = static_cast<int>(json::get_int(d, {"spec", "replicas"}, 1));
  out.recreate = json::get_string(d, {"spec", "strategy", "type"}) == "Recreate";
  if (out.recreate) {
    out.max_surge = 0;
    out.max_unavailable = 0;
    return out;
  }
  out.max_surge = scaled_value(json::find(d, {"spec", "strategy", "rollingUpdate", "maxSurge"}), out.replicas, true, 0);
  out.max_unavailable =
      scaled_value(json::find(d, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}), out.replicas, false, 0);
  if (out.max_surge == 0 && out.max_unavailable == 0) out.max_unavailable = 1;
  if (out.replicas == 0) out.max_unavailable = 0;
  out.max_unavailable = std::min(out.max_unavailable, out.replicas);
  return out;
}

int new_replica_set_size(const rollout_spec& spec, int new_size, int total_size) {
  if (new_size >= spec.replicas || spec.recreate) return spec.replicas;
  int limit = spec.replicas + spec.max_surge;
  if (total_size >= limit) return new_size;
  return new_size + std::min(limit - total_size, spec.replicas - new_size);
}

std::vector<scaling> scale_down_old(const rollout_spec& spec, const rs_counts& newest, const std::vector<rs_counts>& old) {
  std::vector<int> target;
  for (const auto& s : old) target.push_back(s.spec);
  int old_pods = sum(old, [](auto& s) { return s.spec; });
  if (old_pods == 0) return {};
  int min_available = spec.replicas - spec.max_unavailable;
  int room = old_pods + newest.spec - min_available - (newest.spec - newest.available);
  if (room <= 0) return {};
  int cleaned = 0;
  for (auto i : by_age(old)) {
    if (cleaned >= room) break;
    if (old[i].spec == 0 || old[i].spec == old[i].available) continue;
    int take = std::min(room - cleaned, old[i].spec - old[i].available);
    if (take <= 0) continue;
    target[i] -= take;
    cleaned += take;
  }
  int available = newest.available + sum(old, [](auto& s) { return s.available; });
  int surplus = available - min_available;
  for (auto i : by_age(old)) {
    if (surplus <= 0) break;
    if (target[i] == 0) continue;
    int take = std::min(surplus, target[i]);
    target[i] -= take;
    surplus -= take;
  }
  std::vector<scaling> out;
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (target[i] != old[i].spec) out.push_back({i, target[i]});
  }
  return out;
}

std::vector<scaling> proportional(const rollout_spec& spec, const std::vector<rs_counts>& sets,
                                  const std::vector<int>& max_annotations) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].spec > 0) order.push_back(i);
  }
  int total = sum(sets, [](auto& s) { return s.spec; });
  int allowed = spec.replicas > 0 ? spec.replicas + spec.max_surge : 0;
  int to_add = allowed - total;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    if (sets[a].spec != sets[b].spec) return sets[a].spec > sets[b].spec;
    if (sets[a].created == sets[b].created) return a < b;
    return to_add >= 0 ? sets[a].created > sets[b].created : sets[a].created < sets[b].created;
  });
  std::vector<int> target;
  for (const auto& s : sets) target.push_back(s.spec);
  int added = 0;
  for (auto i : order) {
    if (to_add == 0) break;
    double base = max_annotations[i] > 0 ? max_annotations[i] : std::max(total, 1);
    int share = static_cast<int>(std::lround(static_cast<double>(sets[i].spec) * allowed / base)) - sets[i].spec;
    int left = to_add - added;
    share = to_add > 0 ? std::clamp(share, 0, std::max(left, 0)) : std::clamp(share, std::min(left, 0), 0);
    target[i] += share;
    added += share;
  }
  if (!order.empty() && to_add != 0) target[order.front()] = std::max(0, target[order.front()] + to_add - added);
  std::vector<scaling> out;
  for (auto i : order) out.push_back({i, target[i]});
  return out;
}

long revision_of(const object& o) {
  auto text = kube::annotation_of(o, "deployment.kubernetes.io/revision");
  long number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool same_template(const value* a, const value* b) {
  if (!a || !b) return false;
  return json::write_canonical(without_hash(*a)) == json::write_canonical(without_hash(*b));
}

std::string template_hash(const value& pod_template, int collisions) {
  auto text = json::write_canonical(without_hash(pod_template));
  if (collisions > 0) text += "#" + std::to_string(collisions);
  return safe_encode(fnv32a(text));
}

void set_deployment_condition(array& conditions, std::string_view type, std::string_view status, std::string_view reason,
                              std::string_view message, const std::string& now) {
  std::string transition = now;
  if (const auto* old = condition_in(conditions, type)) {
    if (json::get_string(*old, {"status"}) == status) {
      if (json::get_string(*old, {"reason"}) == reason) return;
      transition = std::string(json::get_string(*old, {"lastTransitionTime"}, now));
    }
    erase_condition(conditions, type);
  }
  object c;
  c["type"] = type;
  c["status"] = status;
  c["lastUpdateTime"] = now;
  c["lastTransitionTime"] = transition;
  c["reason"] = reason;
  c["message"] = message;
  conditions.push_back(std::move(c));
}

}  // namespace kubeopera::inline v1::testing::sim
