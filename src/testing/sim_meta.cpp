// Selectors, owners, conditions, quantities and durations.
#include "src/testing/sim_meta.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kubeopera::inline v1::testing::sim {

namespace {

bool in_list(const array* list, std::string_view text) {
  if (!list) return false;
  return std::any_of(list->begin(), list->end(), [&](const value& v) { return json::as_view(v) == text; });
}

bool expression_holds(const object& e, const object* labels) {
  auto key = json::get_string(e, {"key"});
  auto op = json::get_string(e, {"operator"});
  const value* have = labels ? labels->if_contains(key) : nullptr;
  if (op == "Exists") return have != nullptr;
  if (op == "DoesNotExist") return have == nullptr;
  bool inside = have && in_list(json::get_array(e, {"values"}), json::as_view(*have));
  if (op == "In") return inside;
  if (op == "NotIn") return !inside;
  return false;
}

struct suffix {
  std::string_view text;
  double factor;
};

constexpr suffix suffixes[] = {{"Ki", 1024.0},
                               {"Mi", 1048576.0},
                               {"Gi", 1073741824.0},
                               {"Ti", 1099511627776.0},
                               {"Pi", 1125899906842624.0},
                               {"n", 1e-9},
                               {"u", 1e-6},
                               {"m", 1e-3},
                               {"k", 1e3},
                               {"M", 1e6},
                               {"G", 1e9},
                               {"T", 1e12},
                               {"P", 1e15},
                               {"", 1.0}};

std::string trimmed_number(double number) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.9f", number);
  std::string text = buffer;
  while (!text.empty() && text.back() == '0') text.pop_back();
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

bool selects(const object& selector, const object* labels) {
  if (const auto* wanted = json::get_object(selector, {"matchLabels"})) {
    if (!selects_map(*wanted, labels)) return false;
  }
  if (const auto* expressions = json::get_array(selector, {"matchExpressions"})) {
    for (const auto& e : *expressions) {
      if (!e.is_object() || !expression_holds(e.get_object(), labels)) return false;
    }
  }
  return true;
}

bool selects_map(const object& wanted, const object* labels) {
  for (const auto& pair : wanted) {
    const value* have = labels ? labels->if_contains(pair.key()) : nullptr;
    if (!have || json::as_view(*have) != json::as_view(pair.value())) return false;
  }
  return true;
}

const object* labels_of(const object& o) noexcept { return json::get_object(o, {"metadata", "labels"}); }
const object* spec_of(const object& o) noexcept { return json::get_object(o, {"spec"}); }

const object* controller_ref(const object& o) noexcept {
  const auto* refs = json::get_array(o, {"metadata", "ownerReferences"});
  if (!refs) return nullptr;
  for (const auto& r : *refs) {
    if (r.is_object() && json::get_bool(r.get_object(), {"controller"})) return &r.get_object();
  }
  return nullptr;
}

bool controlled_by(const object& o, std::string_view owner_uid) noexcept {
  const auto* ref = controller_ref(o);
  return ref && json::get_string(*ref, {"uid"}) == owner_uid;
}

object make_owner_ref(const resource_type& type, const object& owner, bool controller, bool block) {
  object ref;
  ref["apiVersion"] = type.api_version();
  ref["kind"] = type.kind;
  ref["name"] = kube::name_of(owner);
  ref["uid"] = kube::uid_of(owner);
  if (controller) ref["controller"] = true;
  if (block) ref["blockOwnerDeletion"] = true;
  return ref;
}

bool has_finalizer(const object& o, std::string_view name) noexcept {
  return in_list(json::get_array(o, {"metadata", "finalizers"}), name);
}

void add_finalizer(object& o, std::string_view name) {
  if (has_finalizer(o, name)) return;
  json::ensure_array(json::ensure_object(o, "metadata"), "finalizers").emplace_back(name);
}

void remove_finalizer(object& o, std::string_view name) {
  auto& metadata = json::ensure_object(o, "metadata");
  array kept;
  if (const auto* all = json::get_array(o, {"metadata", "finalizers"})) {
    for (const auto& f : *all) {
      if (json::as_view(f) != name) kept.push_back(f);
    }
  }
  if (kept.empty())
    metadata.erase("finalizers");
  else
    metadata["finalizers"] = std::move(kept);
}

void set_annotation(object& o, std::string_view key, std::string_view text) {
  json::ensure_object(json::ensure_object(o, "metadata"), "annotations")[key] = text;
}

const object* condition_in(const array& conditions, std::string_view type) noexcept {
  for (const auto& c : conditions) {
    if (c.is_object() && json::get_string(c.get_object(), {"type"}) == type) return &c.get_object();
  }
  return nullptr;
}

object* condition_in(array& conditions, std::string_view type) noexcept {
  return const_cast<object*>(condition_in(static_cast<const array&>(conditions), type));
}

void erase_condition(array& conditions, std::string_view type) {
  array kept;
  for (auto& c : conditions) {
    if (!c.is_object() || json::get_string(c.get_object(), {"type"}) != type) kept.push_back(c);
  }
  conditions = std::move(kept);
}

std::optional<std::int64_t> parse_quantity(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[end])) || text[end] == '.' || text[end] == '-' || text[end] == '+'))
    ++end;
  if (end == 0) return std::nullopt;
  double number = 0;
  auto digits = text.substr(0, end);
  if (digits.front() == '+') digits.remove_prefix(1);
  auto [stop, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (ec != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  for (const auto& s : suffixes) {
    if (s.text == text.substr(end)) return static_cast<std::int64_t>(std::ceil(number * s.factor * 1000 - 1e-9));
  }
  return std::nullopt;
}

std::optional<std::int64_t> quantity_of(const value* v) {
  if (!v) return std::nullopt;
  if (v->is_string()) return parse_quantity(json::as_view(*v));
  if (v->is_int64()) return v->get_int64() * 1000;
  if (v->is_uint64()) return static_cast<std::int64_t>(v->get_uint64()) * 1000;
  if (v->is_double()) return static_cast<std::int64_t>(std::ceil(v->get_double() * 1000));
  return std::nullopt;
}

std::string format_quantity(std::int64_t milli, bool binary) {
  if (milli % 1000 != 0) return std::to_string(milli) + "m";
  std::int64_t whole = milli / 1000;
  if (!binary || whole == 0) return std::to_string(whole);
  constexpr std::string_view names[] = {"Ti", "Gi", "Mi", "Ki"};
  std::int64_t unit = 1LL << 40;
  for (auto name : names) {
    if (whole % unit == 0) return std::to_string(whole / unit) + std::string(name);
    unit >>= 10;
  }
  return std::to_string(whole);
}

int scaled_value(const value* v, int total, bool round_up, int fallback) {
  if (!v) return fallback;
  if (v->is_int64()) return static_cast<int>(v->get_int64());
  if (v->is_uint64()) return static_cast<int>(v->get_uint64());
  auto text = json::as_view(*v);
  if (text.empty() || text.back() != '%') return fallback;
  int percent = 0;
  auto [stop, ec] = std::from_chars(text.data(), text.data() + text.size() - 1, percent);
  if (ec != std::errc() || stop != text.data() + text.size() - 1) return fallback;
  return (percent * total + (round_up ? 99 : 0)) / 100;
}

std::optional<system_time> time_of(const value* v) {
  if (!v || !v->is_string()) return std::nullopt;
  auto t = parse_rfc3339(json::as_view(*v));
  if (!t) return std::nullopt;
  return *t;
}

bool pod_ready(const object& pod) noexcept { return kube::condition_true(pod, "Ready"); }

std::optional<system_time> pod_ready_since(const object& pod) {
  const auto* c = kube::find_condition(pod, "Ready");
  if (!c || json::get_string(*c, {"status"}) != "True") return std::nullopt;
  return time_of(c->if_contains("lastTransitionTime"));
}

bool pod_finished(const object& pod) noexcept {
  auto phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

bool pod_active(const object& pod) noexcept { return !pod_finished(pod) && !kube::being_deleted(pod); }

std::string safe_encode(std::uint32_t number) {
  constexpr std::string_view alphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (char c : std::to_string(number)) out += alphabet[static_cast<unsigned char>(c) % alphabet.size()];
  return out;
}

std::uint32_t fnv32a(std::string_view bytes) noexcept {
  std::uint32_t h = 2166136261u;
  for (unsigned char c : bytes) h = (h ^ c) * 16777619u;
  return h;
}

std::optional<duration> parse_go_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  while (!text.empty()) {
    double number = 0;
    auto [stop, ec] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (ec != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    double unit = 0;
    std::size_t length = 1;
    if (text.starts_with("ms"))
      unit = 1e-3, length = 2;
    else if (text.starts_with("us"))
      unit = 1e-6, length = 2;
    else if (text.starts_with("ns"))
      unit = 1e-9, length = 2;
    else if (text.starts_with("h"))
      unit = 3600;
    else if (text.starts_with("m"))
      unit = 60;
    else if (text.starts_with("s"))
      unit = 1;
    else
      return std::nullopt;
    text.remove_prefix(length);
    seconds += number * unit;
  }
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds));
}

std::string format_go_duration(duration d) {
  auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(d).count();
  if (nanos == 0) return "0s";
  if (nanos < 1'000) return std::to_string(nanos) + "ns";
  if (nanos < 1'000'000) return trimmed_number(static_cast<double>(nanos) / 1e3) + "µs";
  if (nanos < 1'000'000'000) return trimmed_number(static_cast<double>(nanos) / 1e6) + "ms";
  auto minutes = nanos / 60'000'000'000;
  auto rest = static_cast<double>(nanos % 60'000'000'000) / 1e9;
  std::string out;
  if (minutes >= 60) out += std::to_string(minutes / 60) + "h";
  if (minutes >= 1) out += std::to_string(minutes % 60) + "m";
  return out + trimmed_number(rest) + "s";
}

}  // namespace kubeopera::inline v1::testing::sim
