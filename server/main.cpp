// The one binary: services, the embedded default and the command line.
#include "server/app/command_line.hpp"

int main(int argc, char** argv) { return kubeopera::app::run_command_line(argc, argv); }
