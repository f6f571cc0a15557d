#include "server/web/problem.hpp"

#include <kubeopera/json/write.hpp>

namespace kubeopera::inline v1::web {

int status_of(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument:
      return 400;
    case errc::unauthenticated:
      return 401;
    case errc::permission_denied:
      return 403;
    case errc::not_found:
      return 404;
    case errc::already_exists:
      return 409;
    case errc::conflict:
      return 409;
    case errc::failed_precondition:
      return 412;
    case errc::gone:
      return 410;
    case errc::too_large:
      return 413;
    case errc::resource_exhausted:
      return 429;
    case errc::unsupported:
      return 501;
    case errc::unavailable:
      return 503;
    case errc::deadline_exceeded:
      return 504;
    case errc::cancelled:
      return 499;
    case errc::data_loss:
      return 500;
    case errc::internal:
      return 500;
  }
  return 500;
}

namespace {

std::string_view title_of(int status) {
  switch (status) {
    case 400:
      return "Bad request";
    case 401:
      return "Not authenticated";
    case 403:
      return "Not allowed";
    case 404:
      return "Not found";
    case 405:
      return "Method not allowed";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition failed";
    case 413:
      return "Too large";
    case 415:
      return "Unsupported media type";
    case 429:
      return "Too many requests";
    case 501:
      return "Not supported";
    case 503:
      return "Unavailable";
    case 504:
      return "Timed out";
    default:
      return "Internal error";
  }
}

// Reasons that carry a status of their own; all of them come from the router itself.
int status_for(const error& e) {
  if (e.reason() == "MethodNotAllowed") return 405;
  if (e.reason() == "UnsupportedMediaType") return 415;
  return status_of(e.code());
}

}  // namespace

json::object problem_document(const error& e, std::string_view request_id) {
  int status = status_for(e);
  bool ours = status == 500;
  json::object o;
  o["type"] = "about:blank";
  o["title"] = title_of(status);
  o["status"] = status;
  o["detail"] = ours ? "something went wrong on our side; the request id finds it in the log" : std::string_view(e.message());
  o["code"] = to_string(e.code());
  o["reason"] = e.reason();
  if (!e.violations().empty()) {
    json::array all;
    for (const auto& v : e.violations()) all.push_back(json::object{{"pointer", v.pointer}, {"message", v.message}});
    o["errors"] = std::move(all);
  }
  if (!request_id.empty()) o["request_id"] = request_id;
  return o;
}

http::response problem_response(const error& e, std::string_view request_id) {
  http::response r(status_for(e), "application/problem+json", json::write(problem_document(e, request_id)));
  if (e.retry_after())
    r.headers.set("Retry-After", std::to_string(e.retry_after()->count()));
  else if (r.status == 503 || r.status == 429)
    r.headers.set("Retry-After", "2");
  if (r.status == 401) r.headers.set("WWW-Authenticate", "Bearer");
  r.headers.set("Cache-Control", "no-store");
  return r;
}

}  // namespace kubeopera::inline v1::web
