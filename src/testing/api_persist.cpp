// Telling every change to a log, and putting the objects of such a log back.
#include "src/testing/api_state.hpp"

#include <kubeopera/json/read.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing {

namespace {

// The kind that is stored under "group/plural", in whatever version.
api::kind_ptr kind_stored_as(const api_server::state& s, const std::string& resource) {
  auto table = s.kinds();
  for (const auto& group : table->groups) {
    for (const auto& version : group.versions) {
      for (const auto& kind : version.kinds) {
        if (kind->storage_key() == resource) return kind;
      }
    }
  }
  return nullptr;
}

result<json::object> object_of(const api_commit& c) {
  json::limits lim;
  lim.max_bytes = 16u << 20;
  lim.max_nodes = 2'000'000;
  auto read = json::read_object(c.object, lim);
  if (!read) return error(errc::data_loss, "BadObject", c.resource + " " + c.ns + "/" + c.name + ": " + read.error().message());
  return std::move(*read);
}

result<void> put_back(api_server::state& s, const api_commit& c) {
  auto kind = kind_stored_as(s, c.resource);
  if (!kind) return error(errc::data_loss, "UnknownResource", "no kind is stored as " + c.resource);
  KUBEOPERA_TRY(auto object, object_of(c));
  s.store.load(*kind, std::move(object));
  return {};
}

// Service addresses are counted; the counter goes on behind the ones that are taken.
void skip_addresses(api_server::state& s, const json::object& service) {
  auto text = json::get_string(service, {"spec", "clusterIP"});
  unsigned last[2] = {0, 0};
  auto dot = text.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return;
  auto before = text.rfind('.', dot - 1);
  if (before == std::string_view::npos) return;
  std::from_chars(text.data() + before + 1, text.data() + dot, last[0]);
  std::from_chars(text.data() + dot + 1, text.data() + text.size(), last[1]);
  s.next_ip = std::max<std::uint32_t>(s.next_ip, last[0] * 256 + last[1] + 1);
}

constexpr std::string_view crd_resource = "apiextensions.k8s.io/customresourcedefinitions";

}  // namespace

void api_server::set_commit_log(api_commit_log log) {
  if (!log) return state_->store.observe({});
  std::weak_ptr<state> weak = state_;
  state_->store.observe([weak, log = std::move(log)](const std::string& key, const api::event& e) {
    auto s = weak.lock();
    if (!s) return;
    api_commit c;
    c.resource = key;
    c.ns = e.now->ns;
    c.name = e.now->name;
    c.resource_version = e.rv;
    if (e.what != api::change::deleted) {
      auto kind = kind_stored_as(*s, key);
      if (!kind) return;
      c.object = api::full_text(*kind, *e.now);
    }
    log(c);
  });
}

result<void> api_server::restore(std::vector<api_commit> all) {
  auto& s = *state_;
  std::uint64_t newest = 0;
  for (const auto& c : all) newest = std::max(newest, c.resource_version);
  s.store.reset(newest);
  for (const auto& c : all) {
    if (c.resource != crd_resource || c.object.empty()) continue;
    KUBEOPERA_CHECK(put_back(s, c));
    api::crd_written(s, c.name);
  }
  for (const auto& c : all) {
    if (c.resource == crd_resource || c.object.empty()) continue;
    KUBEOPERA_CHECK(put_back(s, c));
    if (c.resource != "/services") continue;
    KUBEOPERA_TRY(auto service, object_of(c));
    skip_addresses(s, service);
  }
  return {};
}

}  // namespace kubeopera::inline v1::testing
