// Apps: create, read, change, delete.
#include "server/services/api/app_secrets.hpp"
#include "server/services/api/service.hpp"
#include "server/web/paging.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

namespace kubeopera::inline v1::api {

std::string check_dns_label(std::string_view text) {
  return kube::is_dns_label(text) ? "" : "must be a DNS label: lower-case letters, digits and '-', not at its ends, at most 63";
}

std::string app_resource_name(const std::string& app, const std::string& id) {
  std::string hex;
  for (char c : id)
    if (c != '-') hex += c;
  return app.substr(0, 50) + "-" + hex.substr(hex.size() - 12);
}

namespace {

app_summary summarize(const app_row& a, std::string url) {
  app_summary s;
  s.id = a.id;
  s.name = a.name;
  s.cloudspace_id = a.cloudspace_id;
  s.tenant_cr_name = a.vcluster;
  s.image = a.spec.image;
  s.host = a.host;
  s.url = std::move(url);
  s.state = a.deleting ? "deleting" : a.spec.stopped ? "stopped" : a.spec.paused ? "paused" : "active";
  s.revision = a.revision;
  s.created_at = format_rfc3339_millis(a.created_at);
  s.updated_at = format_rfc3339_millis(a.updated_at);
  return s;
}

std::string etag_of(const app_row& a) { return std::to_string(a.version); }

bool same_spec(const manifest::app_spec& a, const manifest::app_spec& b) {
  return json::write_canonical(json::encode(a)) == json::write_canonical(json::encode(b));
}

error being_deleted() { return {errc::conflict, "AppDeleting", "the app is being deleted"}; }

// Which unique thing an insert or update met.
error explain_clash(const error& e, const manifest::app_spec& spec) {
  if (e.reason() == "app_name_taken")
    return error(errc::already_exists, "AppExists", "this CloudSpace has an app named " + spec.name + " already")
        .with_violation("/name", "is taken");
  if (e.reason() == "host_taken")
    return error(errc::already_exists, "DomainTaken", "this domain belongs to another app").with_violation("/domain", "is taken");
  return e;
}

}  // namespace

api_service::api_service(std::shared_ptr<store> rows, std::shared_ptr<live> cluster, std::shared_ptr<kube::client> host,
                         api_options options, std::function<void()> wake_outbox, clock& clk)
    : store_(std::move(rows)),
      live_(std::move(cluster)),
      host_(std::move(host)),
      options_(std::move(options)),
      wake_outbox_(std::move(wake_outbox)),
      clock_(clk) {}

std::string api_service::url_of(const app_row& a) const {
  return address_of(a, options_.apps_https_port, options_.apps_http_port);
}

result<void> api_service::check_spec(const manifest::app_spec& spec) const {
  auto bad = manifest::validate(spec);
  if (spec.domain) {
    const auto& base = options_.apps_base_domain;
    auto inner = [&](std::string_view end) { return spec.domain->ends_with(end); };
    if (*spec.domain == base || inner("." + base))
      bad.push_back({"/domain", "addresses under " + base + " are given out by the platform"});
    else if (inner(".svc") || inner(".cluster.local") || inner(".localhost") || inner(".localdomain"))
      bad.push_back({"/domain", "is a name inside a cluster or a machine"});
  }
  if (bad.empty()) return {};
  return error(errc::invalid_argument, "InvalidBody",
               bad.size() == 1 ? "1 field is not valid" : std::to_string(bad.size()) + " fields are not valid")
      .with_violations(std::move(bad));
}

std::vector<std::string> api_service::host_candidates(const app_row& a) const {
  if (a.spec.domain) return {*a.spec.domain};
  auto label = a.name + "-" + a.cloudspace_name;
  auto hash = crypto::sha256_hex(a.id).substr(0, 8);
  auto hashed = label.substr(0, 63 - 9);
  while (hashed.ends_with('-')) hashed.pop_back();
  hashed += "-" + hash;
  std::vector<std::string> out;
  if (label.size() <= 63) out.push_back(label + "." + options_.apps_base_domain);
  out.push_back(hashed + "." + options_.apps_base_domain);
  return out;
}

origin origin_of(const web::call& c) { return {c.who.user, c.request_id, c.trace.header()}; }

namespace {

// For the access log.
void name_app(web::call& c, const app_row& a) {
  c.about = {{"app_id", a.id}, {"app", a.name}, {"revision", std::to_string(a.revision)}, {"cluster", a.vcluster}};
}

}  // namespace

task<app_row> api_service::row_of(web::call& c) { co_return co_await store_->app(c.param("appId"), c.visible_tenant()); }

task<app_view> api_service::view(const app_row& a, bool live_data) {
  app_view v;
  auto s = summarize(a, url_of(a));
  v.id = s.id;
  v.name = s.name;
  v.cloudspace_id = s.cloudspace_id;
  v.tenant_cr_name = s.tenant_cr_name;
  v.image = s.image;
  v.host = s.host;
  v.url = s.url;
  v.state = s.state;
  v.revision = s.revision;
  v.created_at = s.created_at;
  v.updated_at = s.updated_at;
  v.updated_by = a.from.actor;
  v.config = a.spec;
  if (live_data) {
    KUBEOPERA_CO_TRY(auto seen, co_await live_->observe(a));
    v.status = view_status(a, *seen);
  }
  co_return v;
}

task<web::page<app_summary>> api_service::list_apps(web::call& c, web::query<app_query> q) {
  KUBEOPERA_CO_TRY(auto rows, co_await store_->apps(c.visible_tenant(), q.value));
  web::page<app_summary> page;
  auto limit = static_cast<std::size_t>(q->limit);
  if (rows.size() > limit) {
    rows.resize(limit);
    page.next_cursor = web::encode_cursor({format_rfc3339_micros(rows.back().created_at), rows.back().id});
  }
  for (const auto& r : rows) page.items.push_back(summarize(r, url_of(r)));
  co_return page;
}

task<placement> api_service::place(const std::string& tenant, const create_app_request& wanted) {
  auto p = co_await store_->place(wanted.cloudspace_id, tenant, wanted.tenant_cr_name);
  if (!p) {
    if (p.error().code() != errc::not_found) co_return p.error();
    co_return error(errc::invalid_argument, "InvalidBody", "no such CloudSpace")
        .with_violation("/cloudspace_id", "no such CloudSpace");
  }
  if (p->vcluster.empty())
    co_return error(errc::invalid_argument, "InvalidBody", "no such vCluster in this CloudSpace")
        .with_violation(wanted.tenant_cr_name ? "/tenant_cr_name" : "/cloudspace_id", "has no such vCluster");
  if (p->deleting) co_return error(errc::failed_precondition, "VClusterDeleting", "this vCluster is being deleted");
  co_return std::move(p);
}

task<void> api_service::store_secrets(const app_row& app, std::map<std::string, std::string> values) {
  if (values.empty()) co_return result<void>();
  KUBEOPERA_CO_TRY(auto client, co_await live_->client_of(app));
  co_return co_await write_app_secret(client, app.name, app.id, std::move(values));
}

task<web::created<app_view>> api_service::create_app(web::call& c, web::body<create_app_request> b) {
  KUBEOPERA_CO_TRY(auto tenant, c.acting_tenant());
  KUBEOPERA_CO_CHECK(check_spec(b.value));
  KUBEOPERA_CO_TRY(auto where, co_await place(tenant, b.value));
  app_row a;
  a.id = make_uuid_v7(clock_);
  a.tenant_id = where.tenant_id;
  a.cloudspace_id = where.cloudspace_id;
  a.cloudspace_name = where.cloudspace_name;
  a.vcluster = where.vcluster;
  a.name = b->name;
  a.resource = app_resource_name(a.name, a.id);
  a.spec = b.value;
  a.from = origin_of(c);
  a.created_at = a.updated_at = clock_.now();
  auto secrets = manifest::extract_secrets(a.spec);
  bool with_secrets = !secrets.empty();
  if (with_secrets) {
    auto taken = co_await store_->take_intent(a, options_.reservation);
    if (!taken) co_return explain_clash(taken.error(), a.spec);
    // What the intent stands for must be over before anybody may take it over.
    auto writing = store_secrets(a, std::move(secrets));
    KUBEOPERA_CO_CHECK(co_await with_deadline<void>(duration(options_.reservation) / 2, std::move(writing)));
  }
  result<void> inserted = error();
  web::created<app_view> reply;
  for (const auto& host : host_candidates(a)) {
    a.host = host;
    KUBEOPERA_CO_TRY(reply.value, co_await view(a, false));
    reply.location = "/api/v1/apps/" + a.id;
    reply.etag = etag_of(a);
    inserted = co_await store_->insert_app(a, with_secrets, remember_created(c, reply));
    if (inserted || inserted.error().reason() != "host_taken") break;
  }
  if (!inserted) co_return explain_clash(inserted.error(), a.spec);
  c.reply_kept = true;
  name_app(c, a);
  wake_outbox_();
  co_return std::move(reply);
}

task<web::tagged<app_view>> api_service::get_app(web::call& c) {
  KUBEOPERA_CO_TRY(auto a, co_await row_of(c));
  KUBEOPERA_CO_TRY(auto v, co_await view(a, true));
  co_return web::tagged<app_view>{std::move(v), etag_of(a)};
}

task<app_row> api_service::change(web::call& c, edit e) {
  auto wanted = c.if_match();
  for (int attempt = 0;; ++attempt) {
    KUBEOPERA_CO_TRY(auto row, co_await row_of(c));
    if (row.deleting) co_return being_deleted();
    if (wanted && *wanted != etag_of(row))
      co_return error(errc::failed_precondition, "VersionMismatch",
                      "the app has changed since; its ETag is now \"" + etag_of(row) + "\"");
    auto next = row;
    KUBEOPERA_CO_CHECK(e(next));
    auto secrets = manifest::extract_secrets(next.spec);
    KUBEOPERA_CO_CHECK(check_spec(next.spec));
    bool domain_same = next.spec.domain == row.spec.domain;
    if (secrets.empty() && same_spec(next.spec, row.spec)) co_return row;
    KUBEOPERA_CO_CHECK(co_await store_secrets(next, std::move(secrets)));
    next.revision = row.revision + 1;
    next.from = origin_of(c);
    auto hosts = domain_same ? std::vector<std::string>{row.host} : host_candidates(next);
    result<void> done = error();
    for (const auto& host : hosts) {
      next.host = host;
      done = co_await store_->update_app(next, row.version);
      if (done || done.error().reason() != "host_taken") break;
    }
    if (done) {
      name_app(c, next);
      wake_outbox_();
      co_return co_await store_->app(row.id, std::nullopt);
    }
    if (done.error().reason() == "VersionChanged" && !wanted && attempt < 5) continue;
    co_return explain_clash(done.error(), next.spec);
  }
}

namespace {

// Another name is another app.
result<void> replace_spec(app_row& row, const manifest::app_spec& spec) {
  if (spec.name != row.name)
    return error(errc::invalid_argument, "InvalidBody", "an app's name cannot be changed")
        .with_violation("/name", "must be " + row.name);
  row.spec = spec;
  return {};
}

}  // namespace

task<web::tagged<app_view>> api_service::update_app(web::call& c, web::body<manifest::app_spec> b) {
  edit e = [spec = std::move(b.value)](app_row& row) { return replace_spec(row, spec); };
  KUBEOPERA_CO_TRY(auto row, co_await change(c, e));
  KUBEOPERA_CO_TRY(auto v, co_await view(row, false));
  co_return web::tagged<app_view>{std::move(v), etag_of(row)};
}

task<web::tagged<app_view>> api_service::change_domain(web::call& c, web::body<domain_request> b) {
  auto body = json::read(c.request.body);
  bool names_domain = body && body->is_object() && body->get_object().contains("domain");
  if (!names_domain && !b->tls)
    co_return error(errc::invalid_argument, "InvalidBody", "name what changes")
        .with_violation("/domain", "domain or tls is required");
  edit e = [request = b.value, names_domain](app_row& row) -> result<void> {
    if (names_domain) row.spec.domain = request.domain;
    if (request.tls) row.spec.tls = *request.tls;
    return {};
  };
  KUBEOPERA_CO_TRY(auto row, co_await change(c, e));
  KUBEOPERA_CO_TRY(auto v, co_await view(row, false));
  co_return web::tagged<app_view>{std::move(v), etag_of(row)};
}

task<web::accepted<app_view>> api_service::delete_app(web::call& c) {
  KUBEOPERA_CO_TRY(auto row, co_await row_of(c));
  auto wanted = c.if_match();
  if (wanted && *wanted != etag_of(row))
    co_return error(errc::failed_precondition, "VersionMismatch",
                    "the app has changed since; its ETag is now \"" + etag_of(row) + "\"");
  name_app(c, row);
  if (!row.deleting) {
    row.from = origin_of(c);
    KUBEOPERA_CO_CHECK(co_await store_->delete_app(row));
    wake_outbox_();
    row.deleting = true;
  }
  KUBEOPERA_CO_TRY(auto v, co_await view(row, false));
  co_return web::accepted<app_view>{std::move(v)};
}

task<web::tagged<manifest::app_spec>> api_service::get_config(web::call& c) {
  KUBEOPERA_CO_TRY(auto row, co_await row_of(c));
  co_return web::tagged<manifest::app_spec>{row.spec, etag_of(row)};
}

task<web::tagged<manifest::app_spec>> api_service::put_config(web::call& c, web::body<manifest::app_spec> b) {
  edit e = [spec = std::move(b.value)](app_row& row) { return replace_spec(row, spec); };
  KUBEOPERA_CO_TRY(auto row, co_await change(c, e));
  co_return web::tagged<manifest::app_spec>{row.spec, etag_of(row)};
}

task<web::tagged<env_vars>> api_service::get_env_vars(web::call& c) {
  KUBEOPERA_CO_TRY(auto row, co_await row_of(c));
  env_vars out;
  out.env = row.spec.env;
  co_return web::tagged<env_vars>{std::move(out), etag_of(row)};
}

task<web::tagged<env_vars>> api_service::put_env_vars(web::call& c, web::body<env_vars> b) {
  edit e = [env = std::move(b.value.env)](app_row& row) -> result<void> {
    row.spec.env = env;
    return {};
  };
  KUBEOPERA_CO_TRY(auto row, co_await change(c, e));
  env_vars out;
  out.env = row.spec.env;
  co_return web::tagged<env_vars>{std::move(out), etag_of(row)};
}

}  // namespace kubeopera::inline v1::api
