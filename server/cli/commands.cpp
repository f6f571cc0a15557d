#include "server/cli/commands.hpp"

#include "server/cli/api_client.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/http/url.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/crds.hpp>
#include <kubeopera/manifest/render.hpp>
#include <kubeopera/yaml/read.hpp>
#include <kubeopera/yaml/write.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace kubeopera::inline v1::cli {
namespace {

result<std::string> slurp(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return error(errc::not_found, "FileNotFound", "cannot read " + path);
  text << in.rdbuf();
  return text.str();
}

// JSON, or YAML where it is not.
result<json::value> read_document(const std::string& path) {
  KUBEOPERA_TRY(auto text, slurp(path));
  auto start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && (text[start] == '{' || path.ends_with(".json"))) return json::read(text);
  return yaml::read(text);
}

result<std::shared_ptr<api_client>> open(asio::any_io_executor executor, connection to) {
  auto from_env = [](std::string& out, const char* name) {
    if (const char* v = std::getenv(name); out.empty() && v) out = v;
  };
  if (to.embedded_file.empty()) {
    from_env(to.api, "KUBEOPERA_API");
    from_env(to.token, "KUBEOPERA_TOKEN");
    if (to.api.empty()) from_env(to.embedded_file, "KUBEOPERA_EMBEDDED");
  }
  if (!to.embedded_file.empty()) {
    KUBEOPERA_TRY(auto text, slurp(to.embedded_file));
    KUBEOPERA_TRY(auto info, json::read_object(text));
    to.api = json::get_string(info, {"api_url"});
    if (to.token.empty()) to.token = json::get_string(info, {"token"});
  }
  if (to.api.empty() || to.token.empty())
    return error(errc::invalid_argument, "NoServer",
                 "name the server: --api and --token, KUBEOPERA_API and KUBEOPERA_TOKEN, or --embedded DIR/embedded.json");
  return api_client::make(std::move(executor), to.api, to.token);
}

const std::vector<column> app_columns = {
    {"NAME", {"name"}}, {"STATE", {"state"}}, {"REVISION", {"revision"}}, {"IMAGE", {"image"}}, {"VCLUSTER", {"tenant_cr_name"}},
    {"URL", {"url"}},   {"ID", {"id"}}};

task<json::array> all_items(api_client& api, std::string path) {
  json::array out;
  std::string cursor;
  do {
    auto page_path = path + (path.find('?') == std::string::npos ? "?" : "&") + "limit=500" +
                     (cursor.empty() ? "" : "&cursor=" + http::percent_encode(cursor));
    KUBEOPERA_CO_TRY(auto page, co_await api.get(page_path));
    if (auto* items = json::get_array(page.as_object(), {"items"}))
      for (const auto& i : *items) out.push_back(i);
    cursor = json::get_string(page.as_object(), {"next_cursor"});
  } while (!cursor.empty());
  co_return out;
}

// An id as it is; a name looked up.
task<std::string> find_app(api_client& api, std::string app) {
  if (is_uuid(app)) co_return app;
  KUBEOPERA_CO_TRY(auto apps, co_await all_items(api, "/api/v1/apps?name=" + http::percent_encode(app)));
  std::string found;
  for (const auto& a : apps) {
    if (json::get_string(a.as_object(), {"name"}) != app) continue;
    if (!found.empty())
      co_return error(errc::invalid_argument, "AmbiguousName", "more than one app is named " + app + "; use the id");
    found = json::get_string(a.as_object(), {"id"});
  }
  if (found.empty()) co_return error(errc::not_found, "AppNotFound", "no app named " + app);
  co_return found;
}

std::string status_line(const json::object& status) {
  std::string out = bold(json::get_string(status, {"phase"}));
  if (auto* stages = json::get_array(status, {"stages"}))
    for (const auto& s : *stages) {
      const auto& o = s.as_object();
      auto state = json::get_string(o, {"state"});
      out += "   " + std::string(json::get_string(o, {"name"})) + ": ";
      out += state == "succeeded" ? green(state) : state == "failed" ? red(state) : std::string(state);
      if (auto cause = json::get_string(o, {"cause"}); !cause.empty()) out += " (" + std::string(cause) + ")";
    }
  if (auto url = json::get_string(status, {"live_url"}); !url.empty()) out += "   " + std::string(url);
  return out;
}

}  // namespace

result<json::object> read_embedded(const std::string& text) { return json::read_object(text); }

int exit_code_of(const error& e) {
  switch (e.code()) {
    case errc::invalid_argument:
      return usage;
    case errc::not_found:
      return not_found_code;
    case errc::permission_denied:
    case errc::unauthenticated:
      return refused;
    case errc::unavailable:
    case errc::deadline_exceeded:
      return unavailable_code;
    default:
      return failed_code;
  }
}

task<void> apps_list(asio::any_io_executor executor, app_command c) {
  KUBEOPERA_CO_TRY(auto api, open(executor, c.to));
  KUBEOPERA_CO_TRY(auto apps, co_await all_items(*api, "/api/v1/apps"));
  if (c.output == format::table)
    print_table(apps, app_columns);
  else
    print_value(apps, c.output);
  co_return result<void>();
}

task<void> apps_create(asio::any_io_executor executor, app_command c) {
  KUBEOPERA_CO_TRY(auto api, open(executor, c.to));
  KUBEOPERA_CO_TRY(auto body, read_document(c.file));
  if (!body.is_object()) co_return error(errc::invalid_argument, "InvalidBody", c.file + " must hold an object");
  if (!c.cloudspace.empty()) {
    auto id = c.cloudspace;
    if (!is_uuid(id)) {
      KUBEOPERA_CO_TRY(auto spaces, co_await all_items(*api, "/api/v1/cloudspaces"));
      for (const auto& s : spaces)
        if (json::get_string(s.as_object(), {"name"}) == c.cloudspace) id = json::get_string(s.as_object(), {"id"});
    }
    body.as_object()["cloudspace_id"] = id;
  }
  KUBEOPERA_CO_TRY(auto made, co_await api->call("POST", "/api/v1/apps", &body, make_uuid_v7()));
  if (c.output == format::table)
    print_table(json::array{made}, app_columns);
  else
    print_value(made, c.output);
  if (!c.watch) co_return result<void>();
  c.app = json::get_string(made.as_object(), {"id"});
  co_return co_await apps_status(executor, c);
}

task<void> apps_get(asio::any_io_executor executor, app_command c) {
  KUBEOPERA_CO_TRY(auto api, open(executor, c.to));
  KUBEOPERA_CO_TRY(auto id, co_await find_app(*api, c.app));
  KUBEOPERA_CO_TRY(auto app, co_await api->get("/api/v1/apps/" + id));
  print_value(app, c.output == format::table ? format::yaml : c.output);
  co_return result<void>();
}

task<void> apps_status(asio::any_io_executor executor, app_command c) {
  KUBEOPERA_CO_TRY(auto api, open(executor, c.to));
  KUBEOPERA_CO_TRY(auto id, co_await find_app(*api, c.app));
  if (!c.watch) {
    KUBEOPERA_CO_TRY(auto status, co_await api->get("/api/v1/apps/" + id + "/deploy-status"));
    if (c.output == format::table)
      std::puts(status_line(status.as_object()).c_str());
    else
      print_value(status, c.output);
    co_return result<void>();
  }
  live_block block;
  std::string phase;
  std::string cause;
  auto on_status = [&](const json::object& status) {
    phase = json::get_string(status, {"phase"});
    if (c.output == format::table)
      block.show({status_line(status)});
    else
      std::puts(json::write(status).c_str());
    return phase != "live" && phase != "failed" && phase != "stopped";
  };
  KUBEOPERA_CO_CHECK(co_await api->watch_status(id, on_status));
  if (phase == "failed") co_return error(errc::failed_precondition, "AppFailed", "the app is not up: see the cause above");
  co_return result<void>();
}

task<void> apps_logs(asio::any_io_executor executor, app_command c) {
  KUBEOPERA_CO_TRY(auto api, open(executor, c.to));
  KUBEOPERA_CO_TRY(auto id, co_await find_app(*api, c.app));
  auto path = "/api/v1/apps/" + id + "/logs?follow=" + (c.follow ? "true" : "false");
  if (c.tail > 0) path += "&tail=" + std::to_string(c.tail);
  co_return co_await api->print_stream(path);
}

task<void> apps_delete(asio::any_io_executor executor, app_command c) {
  KUBEOPERA_CO_TRY(auto api, open(executor, c.to));
  KUBEOPERA_CO_TRY(auto id, co_await find_app(*api, c.app));
  KUBEOPERA_CO_CHECK(co_await api->call("DELETE", "/api/v1/apps/" + id));
  std::printf("deleting %s\n", id.c_str());
  co_return result<void>();
}

result<void> render_file(const std::string& file, const std::string& host, std::int64_t revision, const std::string& out_dir) {
  KUBEOPERA_TRY(auto document, read_document(file));
  if (auto* o = document.if_object()) {  // a create request is an app definition with a place
    o->erase("cloudspace_id");
    o->erase("tenant_cr_name");
  }
  KUBEOPERA_TRY(auto app, manifest::read_app_spec(document));
  manifest::extract_secrets(app);
  manifest::render_context context;
  context.app_id = "00000000-0000-0000-0000-000000000000";
  context.revision = revision;
  context.host = app.domain ? *app.domain : host.empty() ? app.name + ".apps.kubeopera.io" : host;
  KUBEOPERA_TRY(auto out, manifest::render(app, context));
  if (out_dir.empty()) {
    for (const auto& [name, text] : out.files) std::printf("# %s\n---\n%s", name.c_str(), text.c_str());
    return {};
  }
  std::error_code ec;
  std::filesystem::create_directories(out_dir, ec);
  for (const auto& [name, text] : out.files) {
    std::ofstream f(std::filesystem::path(out_dir) / name, std::ios::binary);
    f << text;
    if (!f) return error(errc::unavailable, "CannotWrite", "cannot write " + out_dir + "/" + name);
  }
  return {};
}

void print_crds() {
  for (const auto& crd : manifest::crds()) std::printf("---\n%s", yaml::write(crd).c_str());
}

}  // namespace kubeopera::inline v1::cli
