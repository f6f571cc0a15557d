// Request bodies: content types, JSON and YAML, duplicate keys, kinds that do not fit, unknown fields.
#include "src/testing/api_codec.hpp"
#include "src/testing/api_state.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/read.hpp>

#include <boost/json/parse.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing::api {
namespace {

std::string media_type(const request& r) {
  std::string text(r.raw.headers.get("Content-Type").value_or(""));
  text = text.substr(0, text.find(';'));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// "/data/a~1b" as "data.a/b", with [n] for indexes.
std::string dotted(std::string_view pointer) {
  std::string out;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    auto end = std::min(pointer.find('/'), pointer.size());
    std::string step(pointer.substr(0, end));
    pointer.remove_prefix(end);
    bool index = !step.empty() && std::all_of(step.begin(), step.end(), [](char c) { return c >= '0' && c <= '9'; });
    for (auto at = step.find("~1"); at != std::string::npos; at = step.find("~1")) step.replace(at, 2, "/");
    for (auto at = step.find("~0"); at != std::string::npos; at = step.find("~0")) step.replace(at, 2, "~");
    out += index ? "[" + step + "]" : out.empty() ? step : "." + step;
  }
  return out;
}

std::string parse_problem(const boost::system::error_code& ec, std::string_view text) {
  if (ec == boost::json::error::incomplete) return "unexpected end of JSON input";
  auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "unexpected end of JSON input";
  return "invalid character '" + std::string(1, text[first]) + "' looking for beginning of value";
}

refusal unrecognized(const kind_info& kind, const std::string& why, std::string_view text) {
  std::string shown = text.empty() ? "<empty>" : std::string(text.substr(0, 1024));
  return bad_request("the object provided is unrecognized (must be of type " + kind.kind +
                     "): couldn't get version/kind; json parse error: " + why + " (" + shown + ")");
}

std::size_t members_of(const json::value& v) {
  std::size_t n = 0;
  if (const auto* o = v.if_object()) {
    n = o->size();
    for (const auto& kv : *o) n += members_of(kv.value());
  } else if (const auto* a = v.if_array()) {
    for (const auto& x : *a) n += members_of(x);
  }
  return n;
}

// Colons outside strings: as many as there are members.
std::size_t colons_of(std::string_view text) {
  std::size_t n = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ':' && !quoted) {
      ++n;
    }
  }
  return n;
}

outcome<json::value> parse_json(const kind_info& kind, std::string_view text, std::vector<std::string>& findings) {
  // The plain case first: no key was said twice when the document has a member for every colon.
  if (text.size() <= (3u << 20)) {
    boost::json::parse_options quick;
    quick.max_depth = 128;
    boost::system::error_code ec;
    json::value v = boost::json::parse(text, ec, {}, quick);
    if (!ec && members_of(v) == colons_of(text)) return v;
  }
  json::limits limits;
  limits.max_bytes = 3u << 20;
  limits.max_depth = 128;
  auto strict = json::read(text, limits);
  if (strict) return std::move(*strict);
  const error& e = strict.error();
  if (e.code() == errc::too_large) {
    return refusal(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728");
  }
  if (e.reason() == "DuplicateKey" && !e.violations().empty()) {
    findings.push_back("duplicate field \"" + dotted(e.violations().front().pointer) + "\"");
  }
  boost::json::parse_options options;
  options.max_depth = 128;
  boost::system::error_code ec;
  json::value v = boost::json::parse(text, ec, {}, options);
  if (ec) return unrecognized(kind, parse_problem(ec, text), text);
  return v;
}

outcome<json::value> parse_yaml(const kind_info& kind, std::string_view text, std::vector<std::string>& findings) {
  auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    auto v = parse_json(kind, text, findings);
    if (v) return v;
  }
  auto v = yaml::read_as_go(text);
  if (!v) return bad_request("error decoding YAML: " + v.error().message());
  return std::move(*v);
}

refusal unhandled(const kind_info& kind, std::string_view given_kind, std::string_view given_version, const std::string& why) {
  auto slash = given_version.find('/');
  auto version = slash == std::string_view::npos ? given_version : given_version.substr(slash + 1);
  return bad_request(std::string(given_kind) + " in version " + go_quote(version) + " cannot be handled as a " + kind.kind +
                     ": " + why);
}

std::optional<refusal> check_type(const kind_info& kind, const json::object& o) {
  auto given_kind = json::get_string(o, {"kind"}), given_version = json::get_string(o, {"apiVersion"});
  if (!given_kind.empty() && given_kind != kind.kind) {
    auto slash = given_version.find('/');
    std::string version(slash == std::string_view::npos ? given_version : given_version.substr(slash + 1));
    std::string package = kind.group.empty() ? "core" : kind.group.substr(0, kind.group.find('.'));
    return unhandled(kind, given_kind, given_version,
                     "converting (" + version + "." + std::string(given_kind) + ") to (" + package + "." + kind.kind +
                         "): unknown conversion");
  }
  if (!given_version.empty() && given_version != kind.api_version()) {
    return bad_request("the API version in the data (" + std::string(given_version) +
                       ") does not match the expected API version (" + kind.api_version() + ")");
  }
  if (kind.custom && (given_kind.empty() || given_version.empty())) {
    return bad_request(std::string("Object '") + (given_kind.empty() ? "Kind" : "apiVersion") + "' is missing in '" +
                       json::write(o) + "'");
  }
  return std::nullopt;
}

}  // namespace

outcome<json::value> parse_body(const request& r, const kind_info& kind, std::vector<std::string>& findings) {
  std::string type = media_type(r);
  if (type == "application/yaml" || type == "application/apply-patch+yaml") return parse_yaml(kind, r.raw.body, findings);
  return parse_json(kind, r.raw.body, findings);
}

outcome<body> decode_patched(const kind_info& kind, const json::object& patched) {
  body out;
  decode_report report;
  if (kind.custom) {
    out.object = prune_custom(*kind.t, patched, report);
  } else {
    KUBEOPERA_TRY(out.object, decode_builtin(*kind.t, patched, report));
  }
  out.object["kind"] = kind.kind;
  out.object["apiVersion"] = kind.api_version();
  out.findings = std::move(report.findings);
  return out;
}

outcome<body> read_object(const request& r, const kind_info& kind) {
  std::string type = media_type(r);
  if (!type.empty() && type != "application/json" && type != "application/yaml") {
    return refusal(
        415, "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf");
  }
  std::vector<std::string> findings;
  KUBEOPERA_TRY(json::value v, parse_body(r, kind, findings));
  const auto* o = v.if_object();
  if (!o) {
    return unrecognized(kind,
                        "json: cannot unmarshal " +
                            std::string(v.is_array()    ? "array"
                                        : v.is_string() ? "string"
                                                        : "number") +
                            " into Go value of type struct",
                        r.raw.body);
  }
  if (auto no = check_type(kind, *o)) return std::move(*no);
  auto out = decode_patched(kind, *o);
  if (!out) {
    auto given = json::get_string(*o, {"kind"}, kind.kind);
    return unhandled(kind, given, json::get_string(*o, {"apiVersion"}, kind.api_version()), out.error().message);
  }
  out->findings.insert(out->findings.begin(), findings.begin(), findings.end());
  return out;
}

std::optional<refusal> settle_findings(request& r, const kind_info& kind, const std::vector<std::string>& findings) {
  if (findings.empty() || r.field_validation == "Ignore") return std::nullopt;
  if (r.field_validation == "Strict") {
    std::string list;
    for (const auto& f : findings) list += (list.empty() ? "" : ", ") + f;
    return unhandled(kind, kind.kind, kind.api_version(), "strict decoding error: " + list);
  }
  for (const auto& f : findings) r.warnings.push_back(f);
  return std::nullopt;
}

outcome<json::object> read_delete_options(request& r) {
  json::object out;
  if (!r.raw.body.empty()) {
    static const kind_info options_kind = [] {
      kind_info k;
      k.kind = "DeleteOptions";
      k.version = "v1";
      return k;
    }();
    std::vector<std::string> findings;
    KUBEOPERA_TRY(json::value v, parse_body(r, options_kind, findings));
    if (auto* o = v.if_object()) out = std::move(*o);
  }
  for (const char* key : {"propagationPolicy", "gracePeriodSeconds", "orphanDependents"}) {
    auto text = r.query(key);
    if (text.empty()) continue;
    if (std::string_view(key) == "gracePeriodSeconds") {
      std::int64_t n = 0;
      auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
      if (ec != std::errc() || end != text.data() + text.size()) {
        return bad_request("strconv.ParseInt: parsing " + go_quote(text) + ": invalid syntax");
      }
      out[key] = n;
    } else if (std::string_view(key) == "orphanDependents") {
      out[key] = text == "true";
    } else {
      out[key] = text;
    }
  }
  if (const auto* dry = json::get_array(out, {"dryRun"}); dry && !dry->empty()) r.dry_run = true;
  return out;
}

}  // namespace kubeopera::inline v1::testing::api
