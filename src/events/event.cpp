// The envelope's JSON form and topic rules.
#include <kubeopera/core/id.hpp>
#include <kubeopera/events/event.hpp>
#include <kubeopera/json/read.hpp>

#include <vector>

namespace kubeopera::inline v1::events {

event make_event(std::string type, std::string tenant_id, std::string subject, json::object data, const clock& clk) {
  event e;
  e.id = make_uuid_v7(clk);
  e.type = std::move(type);
  e.tenant_id = std::move(tenant_id);
  e.subject = std::move(subject);
  e.time = clk.now();
  e.data = std::move(data);
  return e;
}

json::object to_json(const event& e) {
  json::object o;
  o["id"] = e.id;
  o["type"] = e.type;
  o["tenant_id"] = e.tenant_id;
  o["subject"] = e.subject;
  o["time"] = format_rfc3339_millis(e.time);
  o["data"] = e.data;
  if (!e.trace.empty()) o["trace"] = e.trace;
  return o;
}

namespace {

std::string text_member(const json::object& o, std::string_view name, std::vector<violation>& wrong) {
  const auto* v = json::find(o, {name});
  if (!v) return {};
  if (!v->is_string()) wrong.push_back({"/" + std::string(name), "must be a string"});
  return std::string(json::as_view(*v));
}

}  // namespace

result<event> from_json(std::string_view text) {
  KUBEOPERA_TRY(auto o, json::read_object(text));
  std::vector<violation> wrong;
  event e;
  e.id = text_member(o, "id", wrong);
  e.type = text_member(o, "type", wrong);
  e.tenant_id = text_member(o, "tenant_id", wrong);
  e.subject = text_member(o, "subject", wrong);
  e.trace = text_member(o, "trace", wrong);
  if (!is_uuid(e.id)) wrong.push_back({"/id", "must be a UUID"});
  if (!is_topic(e.type)) wrong.push_back({"/type", "must be a topic"});
  auto time = parse_rfc3339(text_member(o, "time", wrong));
  if (time)
    e.time = *time;
  else
    wrong.push_back({"/time", "must be an RFC 3339 time"});
  if (const auto* data = json::find(o, {"data"})) {
    if (data->is_object())
      e.data = data->get_object();
    else
      wrong.push_back({"/data", "must be an object"});
  }
  if (wrong.empty()) return e;
  return error(errc::invalid_argument, "BadEvent", "this is no event").with_violations(std::move(wrong));
}

bool is_topic(std::string_view text) noexcept {
  if (text.empty() || text.size() > 255) return false;
  int words = 1;
  bool empty = true;
  for (char c : text) {
    if (c == '.') {
      if (empty || ++words > 10) return false;
      empty = true;
      continue;
    }
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!good) return false;
    empty = false;
  }
  return !empty;
}

namespace {

// Cuts the first word off.
std::string_view next_word(std::string_view& rest) noexcept {
  auto dot = rest.find('.');
  auto word = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return word;
}

}  // namespace

bool topic_matches(std::string_view pattern, std::string_view topic) noexcept {
  // The usual two-pointer match: after a '#', try to let it take one more word each time the rest does not fit.
  std::string_view after_hash, hash_topic;
  bool hash = false;
  while (true) {
    auto rest = pattern;
    auto word = next_word(rest);
    if (word == "#") {
      if (rest.empty()) return true;
      hash = true;
      after_hash = pattern = rest;
      hash_topic = topic;
      continue;
    }
    if (!pattern.empty() && !topic.empty()) {
      auto topic_rest = topic;
      if (word == next_word(topic_rest) || word == "*") {
        pattern = rest;
        topic = topic_rest;
        if (pattern.empty() && topic.empty()) return true;
        continue;
      }
    }
    if (!hash || hash_topic.empty()) return false;
    next_word(hash_topic);
    if (hash_topic.empty()) return false;
    pattern = after_hash;
    topic = hash_topic;
  }
}

}  // namespace kubeopera::inline v1::events
