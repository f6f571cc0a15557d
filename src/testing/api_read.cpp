// GET of one object and of lists: pages, versions, selectors, and the forms in which they may be asked for.
#include "src/testing/api_state.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <boost/json/parse.hpp>

#include <charconv>

namespace kubeopera::inline v1::testing::api {
namespace {

struct list_request {
  filter wanted;
  std::uint64_t limit = 0;
  std::uint64_t rv = 0;      ///< 0: now
  bool any_version = false;  ///< resourceVersion=0
  bool exact = false;
  std::string start;  ///< first key that is wanted
  bool continued = false;
  bool inconsistent = false;
};

std::string encode_token(std::int64_t rv, const std::string& start) {
  json::object o;
  o["v"] = "meta.k8s.io/v1";
  o["rv"] = rv;
  o["start"] = start + std::string(1, '\0');
  return crypto::base64url_encode(json::write(o));
}

refusal bad_token(const std::string& why) { return bad_request("invalid continue token: continue key is not valid: " + why); }

// Reads {"v":...,"rv":N,"start":"/name\0"}; start becomes a storage key.
std::optional<refusal> read_token(const std::string& token, const std::string& ns, list_request& out) {
  auto bytes = crypto::base64url_decode(token);
  if (!bytes) return bad_token("illegal base64 data at input byte 0");
  auto doc = json::read_object(*bytes);
  if (!doc) {
    // What Go says about the first byte that cannot begin a JSON value; it shows it as Latin-1.
    auto first = static_cast<unsigned char>(bytes->empty() ? ' ' : (*bytes)[0]);
    return bad_token("invalid character '" + std::string(1, static_cast<char>(first)) + "' looking for beginning of value");
  }
  if (json::get_string(*doc, {"v"}) != "meta.k8s.io/v1") return bad_token("server is not recognized");
  std::string start(json::get_string(*doc, {"start"}));
  if (!start.empty() && start[0] == '/') start.erase(0, 1);
  std::int64_t rv = json::get_int(*doc, {"rv"});
  out.start = ns.empty() ? start : ns + "/" + start;
  out.continued = true;
  out.inconsistent = rv < 0;
  out.rv = rv > 0 ? static_cast<std::uint64_t>(rv) : 0;
  return std::nullopt;
}

outcome<std::uint64_t> read_version(const std::string& text) {
  std::uint64_t out = 0;
  if (text.empty()) return out;
  auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (ec != std::errc() || p != text.data() + text.size()) {
    return bad_request("invalid resource version: resourceVersion: Invalid value: " + go_quote(text) +
                       ": strconv.ParseUint: parsing " + go_quote(text) + ": invalid syntax");
  }
  return out;
}

outcome<list_request> read_list(const server& s, const request& r) {
  list_request out;
  KUBEOPERA_TRY(out.wanted, read_filter(r));
  std::string limit = r.query("limit"), match = r.query("resourceVersionMatch"), version = r.query("resourceVersion");
  if (!limit.empty()) {
    auto [p, ec] = std::from_chars(limit.data(), limit.data() + limit.size(), out.limit);
    if (ec != std::errc() || p != limit.data() + limit.size()) {
      return bad_request("strconv.ParseInt: parsing " + go_quote(limit) + ": invalid syntax");
    }
  }
  KUBEOPERA_TRY(std::uint64_t rv, read_version(version));
  if (auto token = r.query("continue"); !token.empty()) {
    if (!version.empty() && version != "0") {
      return bad_request("specifying resource version is not allowed when using continue");
    }
    if (auto no = read_token(token, r.ns, out)) return std::move(*no);
    return out;
  }
  out.any_version = version == "0";
  if (out.any_version) out.limit = 0;  // answered from the cache, which does not page
  std::uint64_t current = s.store.current();
  if (rv > current) {
    refusal late(504, "Timeout", "Timeout: Too large resource version: " + version + ", current: " + std::to_string(current));
    json::object cause;
    cause["reason"] = "ResourceVersionTooLarge";
    cause["message"] = "Too large resource version";
    late.details.emplace();
    json::ensure_array(*late.details, "causes").push_back(std::move(cause));
    late.retry_after = 1;
    return late;
  }
  out.exact = match == "Exact" || (rv > 0 && match.empty() && out.limit > 0);
  if (out.exact) out.rv = rv;
  return out;
}

void append_item(std::string& out, const kind_info& kind, const record& rec) {
  if (kind.custom) {
    out += kind.head();
  } else {
    out += '{';
  }
  out += rec.text;
}

std::string list_meta(std::uint64_t rv, const std::string& next, std::optional<std::size_t> remaining, bool custom) {
  json::object m;
  m["resourceVersion"] = std::to_string(rv);
  if (custom || !next.empty()) m["continue"] = next;
  if (remaining) m["remainingItemCount"] = *remaining;
  return json::write(m);
}

refusal too_old(const list_request& q) {
  if (!q.continued) return expired("The resourceVersion for the provided list is too old.");
  refusal r = expired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
      "continue "
      "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the "
      "provided token "
      "results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was "
      "returned and "
      "now may show up in the list.");
  std::string start = q.start;
  if (!start.empty() && start.back() == '\0') start.pop_back();
  if (auto slash = start.find('/'); !q.wanted.ns.empty() && slash != std::string::npos) start = start.substr(slash + 1);
  r.continue_token = encode_token(-1, start);
  return r;
}

}  // namespace

outcome<filter> read_filter(const request& r) {
  filter out;
  out.ns = r.ns;
  KUBEOPERA_TRY(out.labels, label_selector::parse(r.query("labelSelector")));
  KUBEOPERA_TRY(out.fields, field_selector::parse(r.query("fieldSelector")));
  for (const auto& t : out.fields.terms()) {
    bool known = t.field == "metadata.name" || t.field == "metadata.namespace";
    for (const auto& l : r.kind->field_labels) known = known || l == t.field;
    if (known) continue;
    if (r.kind->is("", "pods") || r.kind->is("", "events")) return bad_request("field label not supported: " + t.field);
    return bad_request(go_quote(t.field) + " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
  }
  return out;
}

http::response json_response(int status, const json::object& o) { return {status, "application/json", json::write(o)}; }

json::object partial_metadata(const json::object& o) {
  json::object out;
  out["kind"] = "PartialObjectMetadata";
  out["apiVersion"] = "meta.k8s.io/v1";
  if (const auto* m = o.if_contains("metadata")) out["metadata"] = *m;
  return out;
}

http::response respond(const server& s, const request& r, int status, const kind_info& kind, const record& rec) {
  if (r.as == view::plain || r.as == view::discovery) return {status, "application/json", full_text(kind, rec)};
  json::object o = parse_record(kind, rec);
  if (r.as == view::partial) return json_response(status, partial_metadata(o));
  return json_response(status, make_table(s, r, {std::move(o)}, true));
}

outcome<http::response> get_object(server& s, request& r) {
  KUBEOPERA_TRY(auto version, read_version(r.query("resourceVersion")));
  static_cast<void>(version);
  record_ptr rec = s.store.get(*r.kind, storage_name(r.ns, r.name));
  if (!rec) return not_found(*r.kind, r.name);
  return respond(s, r, 200, *r.kind, *rec);
}

outcome<http::response> list_objects(server& s, request& r) {
  KUBEOPERA_TRY(list_request q, read_list(s, r));
  auto snapshot = s.store.list(*r.kind, r.ns, q.rv, q.start);
  if (!snapshot) return too_old(q);
  std::vector<record_ptr> chosen;
  std::string next;
  std::optional<std::size_t> remaining;
  for (std::size_t i = 0; i < snapshot->records.size(); ++i) {
    const record_ptr& rec = snapshot->records[i];
    if (!q.wanted.matches(*r.kind, *rec)) continue;
    if (q.limit > 0 && chosen.size() == q.limit) {
      const record& last = *chosen.back();
      std::string key = storage_name(r.ns.empty() ? last.ns : "", last.name);
      next = encode_token(static_cast<std::int64_t>(snapshot->rv), (r.kind->plural == "events" ? "" : "/") + key);
      if (!q.wanted.selects()) remaining = snapshot->records.size() - i;
      break;
    }
    chosen.push_back(rec);
  }
  if (r.as == view::table || r.as == view::partial) {
    std::vector<json::object> objects;
    for (const auto& rec : chosen) objects.push_back(parse_record(*r.kind, *rec));
    json::object out;
    if (r.as == view::table) {
      out = make_table(s, r, objects, true);
    } else {
      out["kind"] = "PartialObjectMetadataList";
      out["apiVersion"] = "meta.k8s.io/v1";
      out["metadata"] = json::object();
      auto& items = json::ensure_array(out, "items");
      for (const auto& o : objects) items.push_back(partial_metadata(o));
    }
    auto& meta = json::ensure_object(out, "metadata");
    meta["resourceVersion"] = std::to_string(snapshot->rv);
    if (!next.empty()) meta["continue"] = next;
    if (remaining) meta["remainingItemCount"] = *remaining;
    return json_response(200, out);
  }
  std::string items;
  std::size_t size = 0;
  for (const auto& rec : chosen) size += rec->text.size() + 128;
  items.reserve(size);
  for (const auto& rec : chosen) {
    if (!items.empty()) items += ',';
    append_item(items, *r.kind, *rec);
  }
  std::string meta = list_meta(snapshot->rv, next, remaining, r.kind->custom != nullptr);
  std::string version = "\"apiVersion\":\"" + r.kind->api_version() + "\"", kind = "\"kind\":\"" + r.kind->list_kind + "\"";
  std::string text = r.kind->custom ? "{" + version + ",\"items\":[" + items + "]," + kind + ",\"metadata\":" + meta + "}"
                                    : "{" + kind + "," + version + ",\"metadata\":" + meta + ",\"items\":[" + items + "]}";
  return http::response(200, "application/json", std::move(text));
}

}  // namespace kubeopera::inline v1::testing::api
