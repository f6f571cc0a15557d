#include "server/app/command_line.hpp"

#include "server/app/auth.hpp"
#include "server/app/config.hpp"
#include "server/app/doctor.hpp"
#include "server/app/embedded.hpp"
#include "server/app/roles.hpp"
#include "server/app/serve.hpp"
#include "server/cli/commands.hpp"
#include "server/cli/tour.hpp"

#include <kubeopera/crypto/jwt.hpp>
#include <kubeopera/json/write.hpp>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

namespace kubeopera::inline v1::app {
namespace {

using cli::exit_code_of;

int report(const result<void>& r) {
  if (r) return cli::ok;
  cli::print_error(r.error());
  return exit_code_of(r.error());
}

asio::awaitable<void> keep(task<void> work, result<void>& out) { out = co_await std::move(work); }

// Runs one asynchronous command to its end.
int run_task(const std::function<task<void>(asio::any_io_executor)>& start) {
  boost::asio::io_context io;
  result<void> out = error();
  spawn(io.get_executor(), keep(start(io.get_executor()), out));
  io.run();
  return report(out);
}

struct arguments {
  cli::app_command app;
  embedded_options embedded;
  serve_options serve;
  doctor_options doctor;
  cli::tour_options tour;
  std::string tour_result, service, file, host, out_dir, format = "table", user = "developer@example.com", tenant;
  std::int64_t revision = 1;
  int hours = 8;
  bool admin = false;
};

task<void> tour_command(asio::any_io_executor executor, cli::tour_options options, std::string result_file) {
  KUBEOPERA_CO_TRY(auto done, co_await cli::run_tour(executor, options));
  if (result_file.empty()) co_return result<void>();
  // For scripts: shell assignments. The values are URLs and paths of ours.
  std::ifstream in(options.embedded_file);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  KUBEOPERA_CO_TRY(auto info, cli::read_embedded(text));
  std::ofstream out(result_file);
  auto line = [&out](const char* name, std::string_view value) {
    out << name << "=\"";
    for (char c : value) {
      if (c == '"' || c == '\\' || c == '$' || c == '`') out << '\\';
      out << c;
    }
    out << "\"\n";
  };
  line("live_url", done.live_url);
  line("curl_command", done.curl);
  line("api_url", json::get_string(info, {"api_url"}));
  line("token", json::get_string(info, {"token"}));
  co_return result<void>();
}

int print_token(const arguments& a) {
  auto s = read_settings();
  const char* key = std::getenv("AUTH_JWT_ACCESS_SECRET");
  if (!key) {
    std::fputs("kubeopera: AUTH_JWT_ACCESS_SECRET is required\n", stderr);
    return cli::usage;
  }
  crypto::jwt_options o;
  if (s) {
    o.issuer = s->jwt_issuer;
    o.audience = s->jwt_audience;
  }
  auto signer = crypto::jwt_signer::make(secret(key), o);
  if (!signer) return report(signer.error());
  crypto::claims c;
  c.sub = a.user;
  c.tenant_id = a.tenant;
  c.platform_admin = a.admin;
  if (!a.admin) c.permissions = developer_permissions();
  c.exp = std::chrono::system_clock::now() + std::chrono::hours(a.hours);
  auto token = signer->sign(c);
  if (!token) return report(token.error());
  std::puts(token->c_str());
  return cli::ok;
}

int print_openapi(const std::string& service) {
  const auto* r = find_role(service);
  if (!r) {
    std::string names;
    for (const auto& each : roles()) names += " " + each.name;
    std::fprintf(stderr, "kubeopera: no service named %s; there are:%s\n", service.c_str(), names.c_str());
    return cli::usage;
  }
  std::puts(json::write_pretty(openapi_of(*r)).c_str());
  return cli::ok;
}

void add_connection(CLI::App& c, arguments& a) {
  c.add_option("--api", a.app.to.api, "URL of the API (KUBEOPERA_API)");
  c.add_option("--token", a.app.to.token, "Access token (KUBEOPERA_TOKEN)");
  c.add_option("--embedded", a.app.to.embedded_file, "embedded.json of an embedded server (KUBEOPERA_EMBEDDED)");
  c.add_option("-o,--output", a.format, "table, json or yaml")->check(CLI::IsMember({"table", "json", "yaml"}));
}

using app_function = task<void> (*)(asio::any_io_executor, cli::app_command);

void add_apps(CLI::App& root, arguments& a, std::function<int()>& action) {
  auto& apps = *root.add_subcommand("apps", "Apps of a tenant");
  apps.require_subcommand(1);
  auto add = [&](const char* name, const char* text, app_function f) -> CLI::App& {
    auto& c = *apps.add_subcommand(name, text);
    add_connection(c, a);
    c.callback([&a, &action, f] {
      a.app.output = a.format == "json" ? cli::format::json : a.format == "yaml" ? cli::format::yaml : cli::format::table;
      action = [&a, f] { return run_task([&a, f](asio::any_io_executor e) { return f(e, a.app); }); };
    });
    return c;
  };
  add("list", "List apps", cli::apps_list);
  auto& create = add("create", "Create an app from a JSON or YAML file", cli::apps_create);
  create.add_option("file", a.app.file, "The request; - reads standard input")->required();
  create.add_option("--cloudspace", a.app.cloudspace, "Id or name of the CloudSpace");
  create.add_flag("--watch", a.app.watch, "Follow until it is live or has failed");
  for (auto [name, text, f] : {std::tuple{"get", "An app with its configuration and live status", &cli::apps_get},
                               std::tuple{"status", "GitOps, readiness and reachability", &cli::apps_status},
                               std::tuple{"logs", "Logs of an app's pods", &cli::apps_logs},
                               std::tuple{"delete", "Delete an app and everything it created", &cli::apps_delete}}) {
    auto& c = add(name, text, f);
    c.add_option("app", a.app.app, "Id or name")->required();
    if (f == &cli::apps_status) c.add_flag("--watch", a.app.watch, "Follow until it is live or has failed");
    if (f == &cli::apps_logs) {
      c.add_flag("-f,--follow", a.app.follow, "Stream new lines");
      c.add_option("--tail", a.app.tail, "Lines from the end");
    }
  }
}

void add_server(CLI::App& root, arguments& a, std::function<int()>& action) {
  auto& embedded = *root.add_subcommand("embedded", "Everything in one process: private PostgreSQL, simulated clusters");
  a.embedded.data_dir = "/var/tmp/kubeopera";
  embedded.add_option("--data-dir", a.embedded.data_dir, "Where everything is kept")->capture_default_str();
  embedded.add_option("--port", a.embedded.port, "Port of the API; any free one where absent");
  embedded.add_option("--log-level", a.embedded.log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  embedded.callback([&] { action = [&a] { return report(run_embedded(a.embedded)); }; });
  auto& serve = *root.add_subcommand("serve", "Run services against real clusters; settings come from the environment");
  serve.add_option("--roles", a.serve.roles, "Comma-separated roles")->delimiter(',')->required();
  serve.callback([&] { action = [&a] { return report(run_serve(a.serve)); }; });
  auto& doctor = *root.add_subcommand("doctor", "Check a deployment and say what to do; exit code 1 where something failed");
  doctor.add_option("--data-dir", a.doctor.data_dir, "Of an embedded server; without it, what the environment describes");
  doctor.add_flag("--json", a.doctor.as_json, "One JSON document instead of a table");
  doctor.callback([&] { action = [&a] { return run_doctor(a.doctor); }; });
  auto& migrate = *root.add_subcommand("migrate", "Bring the database schemas up to date, then end");
  migrate.callback([&] { action = [] { return report(run_migrate()); }; });
  auto& tour = *root.add_subcommand(
      "tour", "Deploy, change, break and delete apps against a running embedded server, and prove each step");
  tour.add_option("--embedded", a.tour.embedded_file, "embedded.json of the server")->required();
  tour.add_option("--apps", a.tour.apps_dir, "Folder of example requests")->required();
  tour.add_flag("--keep", a.tour.keep, "Leave the first app running");
  tour.add_option("--result", a.tour_result, "Write the live address as shell assignments");
  tour.callback([&] {
    action = [&a] { return run_task([&a](asio::any_io_executor e) { return tour_command(e, a.tour, a.tour_result); }); };
  });
}

void add_offline(CLI::App& root, arguments& a, std::function<int()>& action) {
  auto& render = *root.add_subcommand("render", "Kubernetes manifests of an app definition");
  render.add_option("file", a.file, "JSON or YAML; - reads standard input")->required();
  render.add_option("--host", a.host, "The app's address");
  render.add_option("--revision", a.revision, "Revision to write")->capture_default_str();
  render.add_option("--out", a.out_dir, "Write files into this folder");
  render.callback([&] { action = [&a] { return report(cli::render_file(a.file, a.host, a.revision, a.out_dir)); }; });
  auto& openapi = *root.add_subcommand("openapi", "The OpenAPI document of a service");
  openapi.add_option("service", a.service, "api, app ...")->required();
  openapi.callback([&] { action = [&a] { return print_openapi(a.service); }; });
  root.add_subcommand("crds", "The CustomResourceDefinitions, for kubectl apply")->callback([&] {
    action = [] {
      cli::print_crds();
      return int(cli::ok);
    };
  });
  auto& token = *root.add_subcommand("token", "Sign an access token with AUTH_JWT_ACCESS_SECRET");
  token.add_option("--user", a.user, "Subject")->capture_default_str();
  token.add_option("--tenant", a.tenant, "Tenant id");
  token.add_flag("--admin", a.admin, "Platform administrator");
  token.add_option("--hours", a.hours, "Lifetime")->check(CLI::Range(1, 24 * 365))->capture_default_str();
  token.callback([&] { action = [&a] { return print_token(a); }; });
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App root("kubeopera: application delivery through Git, a vCluster for every tenant", "kubeopera");
  root.set_version_flag("--version", "kubeopera 0.1.0");
  root.require_subcommand(1);
  arguments a;
  std::function<int()> action;
  add_server(root, a, action);
  add_apps(root, a, action);
  add_offline(root, a, action);
  std::string overview;
  root.add_subcommand("help", "This text")->callback([&] {
    action = [&overview] {
      std::fputs(overview.c_str(), stdout);
      return int(cli::ok);
    };
  });
  overview = root.help();  // once parsed, it would be that of the subcommand
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    int code = root.exit(e);
    return code == 0 ? 0 : int(cli::usage);
  }
  return action();
}

}  // namespace kubeopera::inline v1::app
