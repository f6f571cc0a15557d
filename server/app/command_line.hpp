// Parses the command line and runs what it says.
#pragma once

namespace kubeopera::inline v1::app {

/// The process's exit code: see cli::exit_code.
int run_command_line(int argc, char** argv);

}  // namespace kubeopera::inline v1::app
