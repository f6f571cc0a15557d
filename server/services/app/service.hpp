// The app service: the manifest generator over HTTP. It keeps nothing and asks nobody.
#pragma once

#include "server/services/app/client.hpp"
#include "server/web/route.hpp"

#include <memory>
#include <vector>

namespace kubeopera::inline v1::app_service {

struct validate_reply {
  struct problem {
    std::string pointer, message;
  };
  bool valid = false;
  std::vector<problem> errors;
};
KUBEOPERA_DESCRIBE(validate_reply::problem, (pointer, message))
KUBEOPERA_DESCRIBE(validate_reply, (valid, errors))

class service {
 public:
  task<render_reply> render_manifests(web::call& c, web::body<render_request> b);
  task<validate_reply> validate_app(web::call& c, web::body<manifest::app_spec> b);
  static std::vector<web::route> routes(std::shared_ptr<service> self);
};

}  // namespace kubeopera::inline v1::app_service
