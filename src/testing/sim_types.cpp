// Discovery: /api, /apis and the resource lists.
#include "src/testing/sim_types.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/kube/status.hpp>

#include <set>

namespace kubeopera::inline v1::testing::sim {

namespace {

bool has_verbs(const json::object& resource) {
  const auto* verbs = json::get_array(resource, {"verbs"});
  if (!verbs) return false;
  int found = 0;
  for (const auto& v : *verbs) {
    auto word = json::as_view(v);
    if (word == "list" || word == "watch" || word == "delete") ++found;
  }
  return found == 3;
}

}  // namespace

task<json::object> get_json(kube::client& api, std::string path) {
  http::request request("GET", std::move(path));
  request.headers.set("Accept", "application/json");
  auto r = co_await api.raw(std::move(request));
  if (!r) co_return r.error();
  if (r->status >= 300) co_return kube::error_of_response(r->status, r->headers, r->body);
  json::limits lim;
  lim.max_bytes = 64u << 20;
  lim.max_nodes = 4'000'000;
  auto read = json::read_object(r->body, lim);
  if (!read) co_return error(errc::data_loss, "BadAnswer", read.error().message());
  co_return std::move(*read);
}

task<void> type_registry::refresh(kube::client& api) {
  std::vector<std::pair<std::string, std::string>> versions{{"", "v1"}};
  KUBEOPERA_CO_TRY(auto groups, co_await get_json(api, "/apis"));
  if (const auto* all = json::get_array(groups, {"groups"})) {
    for (const auto& g : *all) {
      auto name = std::string(json::get_string(g.as_object(), {"name"}));
      auto preferred = std::string(json::get_string(g.as_object(), {"preferredVersion", "version"}));
      versions.emplace_back(name, preferred);
      if (const auto* more = json::get_array(g.as_object(), {"versions"})) {
        for (const auto& v : *more) {
          auto version = std::string(json::get_string(v.as_object(), {"version"}));
          if (version != preferred) versions.emplace_back(name, version);
        }
      }
    }
  }
  std::map<std::pair<std::string, std::string>, kube::resource_type> by_kind;
  std::vector<kube::resource_type> listable;
  std::set<std::string> seen;
  for (const auto& [group, version] : versions) {
    auto path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
    auto list = co_await get_json(api, path);
    if (!list && list.error().code() == errc::not_found) continue;
    if (!list) co_return list.error();
    const auto* resources = json::get_array(*list, {"resources"});
    if (!resources) continue;
    for (const auto& r : *resources) {
      const auto& o = r.as_object();
      auto plural = std::string(json::get_string(o, {"name"}));
      if (plural.find('/') != std::string::npos) continue;
      kube::resource_type type{group, version, plural, std::string(json::get_string(o, {"kind"})),
                               json::get_bool(o, {"namespaced"})};
      by_kind[{type.api_version(), type.kind}] = type;
      if (has_verbs(o) && seen.insert(group + "/" + plural).second) listable.push_back(type);
    }
  }
  by_kind_ = std::move(by_kind);
  listable_ = std::move(listable);
  co_return result<void>();
}

std::optional<kube::resource_type> type_registry::find(std::string_view api_version, std::string_view kind) const {
  auto it = by_kind_.find({std::string(api_version), std::string(kind)});
  if (it == by_kind_.end()) return std::nullopt;
  return it->second;
}

}  // namespace kubeopera::inline v1::testing::sim
