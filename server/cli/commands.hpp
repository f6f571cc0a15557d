// The command line: what each command does. Parsing is in main_cli.cpp.
#pragma once

#include "server/cli/terminal.hpp"

#include <kubeopera/core/async.hpp>

#include <optional>
#include <string>

namespace kubeopera::inline v1::cli {

/// Exit codes that scripts can use.
enum exit_code { ok = 0, failed_code = 1, usage = 2, not_found_code = 3, refused = 4, unavailable_code = 5 };
int exit_code_of(const error& e);

/// Where the API is and who asks: --api and --token, KUBEOPERA_API and KUBEOPERA_TOKEN, or an embedded server's file.
struct connection {
  std::string api, token, embedded_file;
};

struct app_command {
  connection to;
  format output = format::table;
  std::string app;         ///< id or name
  std::string file;        ///< create
  std::string cloudspace;  ///< id or name
  bool watch = false, follow = false;
  int tail = 0;
};

task<void> apps_list(asio::any_io_executor executor, app_command c);
task<void> apps_create(asio::any_io_executor executor, app_command c);
task<void> apps_get(asio::any_io_executor executor, app_command c);
/// Errors: failed_precondition when, with --watch, the app ends up failed.
task<void> apps_status(asio::any_io_executor executor, app_command c);
task<void> apps_logs(asio::any_io_executor executor, app_command c);
task<void> apps_delete(asio::any_io_executor executor, app_command c);

/// The content of an embedded.json. Errors: those of json::read.
result<json::object> read_embedded(const std::string& text);

/// Renders manifests of an app definition (JSON or YAML) to standard output or into a folder.
result<void> render_file(const std::string& file, const std::string& host, std::int64_t revision, const std::string& out_dir);
/// Prints the CustomResourceDefinitions as YAML documents.
void print_crds();

}  // namespace kubeopera::inline v1::cli
