// What a handler gets beside its typed query and body: path, identity, headers.
#pragma once

#include "server/web/identity.hpp"

#include <kubeopera/core/log.hpp>
#include <kubeopera/core/result.hpp>
#include <kubeopera/core/trace.hpp>
#include <kubeopera/http/message.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::web {

/// One request on its way through a handler. Lives until the handler's coroutine ends.
struct call {
  http::request request;
  std::string request_id;
  trace_context trace;    ///< this request's span; its parent is the caller's traceparent where that was valid
  std::string route;      ///< the template of the path, "/api/v1/apps/{appId}"; "" where none matches
  field_list about = {};  ///< ids for the log beside those of the path; a handler adds what it has made. Never secrets.
  identity who;
  /// Path parameters by name, decoded.
  std::vector<std::pair<std::string, std::string>> path;
  std::vector<std::pair<std::string, std::string>> query;
  /// Set where the request carries an Idempotency-Key that is reserved for it: a handler may remember its reply in the
  /// transaction of its effect, so that a crash between the two does not lose it.
  std::string idempotency_key;
  bool reply_kept = false;  ///< the handler has done so

  const std::string& param(std::string_view name) const;
  /// The ETag of If-Match without quotes; nullopt when absent.
  std::optional<std::string> if_match() const;
  /// The tenant that this request acts for. Errors: failed_precondition for an administrator who named none.
  result<std::string> acting_tenant() const;
  /// The tenant whose things are visible; nullopt for administrators: all.
  std::optional<std::string> visible_tenant() const;
};

}  // namespace kubeopera::inline v1::web
