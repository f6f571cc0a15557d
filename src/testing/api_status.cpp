// Builds Status objects with the words that kube-apiserver uses.
#include "src/testing/api_status.hpp"

#include "src/testing/api_kinds.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {

void throw_exception_from_error(const refusal& e, const boost::source_location&) {
  throw std::logic_error("refused: " + e.message);
}

std::string go_quote(std::string_view text) {
  std::string out;
  json::append_quoted(out, text);
  return out;
}

problem invalid_value(std::string field, std::string_view value_text, std::string_view why) {
  return {"FieldValueInvalid", std::move(field), "Invalid value: " + std::string(value_text) + ": " + std::string(why)};
}

problem required_value(std::string field, std::string_view why) {
  return {"FieldValueRequired", std::move(field), why.empty() ? "Required value" : "Required value: " + std::string(why)};
}

problem forbidden_value(std::string field, std::string_view why) {
  return {"FieldValueForbidden", std::move(field), "Forbidden: " + std::string(why)};
}

problem duplicate_value(std::string field, std::string_view value_text) {
  return {"FieldValueDuplicate", std::move(field), "Duplicate value: " + std::string(value_text)};
}

problem unsupported_value(std::string field, std::string_view value_text, const std::vector<std::string>& supported) {
  std::string list;
  for (const auto& s : supported) list += (list.empty() ? "" : ", ") + go_quote(s);
  return {"FieldValueNotSupported", std::move(field),
          "Unsupported value: " + std::string(value_text) + ": supported values: " + list};
}

std::string qualified(std::string_view resource, std::string_view group) {
  std::string out(resource);
  if (!group.empty()) out.append(".").append(group);
  return out;
}

namespace {
json::object about(std::string_view name, std::string_view group, std::string_view kind) {
  json::object d;
  if (!name.empty()) d["name"] = name;
  if (!group.empty()) d["group"] = group;
  if (!kind.empty()) d["kind"] = kind;
  return d;
}
refusal with_kind(int code, const char* reason, std::string message, const kind_info& kind, std::string_view name) {
  refusal r(code, reason, std::move(message));
  r.details = about(name, kind.group, kind.plural);
  return r;
}
}  // namespace

refusal bad_request(std::string message) { return {400, "BadRequest", std::move(message)}; }

refusal not_found(const kind_info& kind, std::string_view name) {
  return with_kind(404, "NotFound", qualified(kind.plural, kind.group) + " " + go_quote(name) + " not found", kind, name);
}

refusal already_exists(const kind_info& kind, std::string_view name) {
  return with_kind(409, "AlreadyExists", qualified(kind.plural, kind.group) + " " + go_quote(name) + " already exists", kind,
                   name);
}

refusal conflict(const kind_info& kind, std::string_view name, std::string_view why) {
  return with_kind(
      409, "Conflict",
      "Operation cannot be fulfilled on " + qualified(kind.plural, kind.group) + " " + go_quote(name) + ": " + std::string(why),
      kind, name);
}

refusal forbidden(const kind_info& kind, std::string_view name, std::string_view why) {
  std::string subject = qualified(kind.plural, kind.group);
  if (!name.empty()) subject += " " + go_quote(name);
  return with_kind(403, "Forbidden", subject + " is forbidden: " + std::string(why), kind, name);
}

refusal invalid(std::string_view group, std::string_view kind, std::string_view name, const problems& all) {
  refusal r(422, "Invalid", qualified(kind, group) + " " + go_quote(name) + " is invalid: ");
  json::array causes;
  std::vector<std::string> lines;  // a problem that was found twice is told once, and listed twice
  for (const auto& p : all) {
    std::string line = p.field + ": " + p.message;
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    json::object c;
    c["reason"] = p.reason;
    c["message"] = p.message;
    c["field"] = p.field;
    causes.push_back(std::move(c));
  }
  std::string list;
  for (const auto& l : lines) list += (list.empty() ? "" : ", ") + l;
  r.message += lines.size() == 1 ? list : "[" + list + "]";
  r.details = about(name, group, kind);
  (*r.details)["causes"] = std::move(causes);
  return r;
}

refusal method_not_allowed() {
  refusal r(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
  r.details.emplace();
  return r;
}

refusal no_such_resource() {
  refusal r(404, "NotFound", "the server could not find the requested resource");
  r.details.emplace();
  return r;
}

refusal expired(std::string message) { return {410, "Expired", std::move(message)}; }

refusal internal(std::string message) {
  refusal r(500, "InternalError", "Internal error occurred: " + message);
  json::object cause;
  cause["message"] = message;
  r.details.emplace();
  json::ensure_array(*r.details, "causes").push_back(std::move(cause));
  return r;
}

json::object status_object(const refusal& r) {
  json::object o;
  o["kind"] = "Status";
  o["apiVersion"] = "v1";
  json::object meta;
  if (!r.continue_token.empty()) meta["continue"] = r.continue_token;
  o["metadata"] = std::move(meta);
  o["status"] = "Failure";
  o["message"] = r.message;
  if (!r.reason.empty()) o["reason"] = r.reason;
  if (r.details || r.retry_after) {
    json::object d = r.details.value_or(json::object());
    if (r.retry_after) d["retryAfterSeconds"] = *r.retry_after;
    o["details"] = std::move(d);
  }
  o["code"] = r.code;
  return o;
}

http::response status_response(const refusal& r) {
  http::response out = r.text.empty() ? http::response(r.code, "application/json", json::write(status_object(r)))
                                      : http::response(r.code, "text/plain; charset=utf-8", r.text);
  if (r.retry_after) out.headers.set("Retry-After", std::to_string(*r.retry_after));
  return out;
}

json::object success_status(const kind_info& kind, std::string_view name, std::string_view uid) {
  json::object o;
  o["kind"] = "Status";
  o["apiVersion"] = "v1";
  o["metadata"] = json::object();
  o["status"] = "Success";
  json::object d = about(name, kind.group, kind.plural);
  if (!uid.empty()) d["uid"] = uid;
  o["details"] = std::move(d);
  return o;
}

}  // namespace kubeopera::inline v1::testing::api
