// `kubeopera doctor`: looks at a deployment and says what to do. Reads only; never prints a secret.
#pragma once

#include <string>

namespace kubeopera::inline v1::app {

struct doctor_options {
  std::string data_dir;  ///< of an embedded server; "": the deployment that the environment describes
  bool as_json = false;
};

/// Prints what was found. Returns 0, 1 where something failed, 2 where there is no such folder. Each check has a time limit.
int run_doctor(const doctor_options& options);

}  // namespace kubeopera::inline v1::app
