// Words of the error codes and their text form.
#include <kubeopera/core/error.hpp>
#include <kubeopera/core/result.hpp>

namespace kubeopera::inline v1 {

std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument:
      return "invalid_argument";
    case errc::unauthenticated:
      return "unauthenticated";
    case errc::permission_denied:
      return "permission_denied";
    case errc::not_found:
      return "not_found";
    case errc::already_exists:
      return "already_exists";
    case errc::conflict:
      return "conflict";
    case errc::failed_precondition:
      return "failed_precondition";
    case errc::gone:
      return "gone";
    case errc::too_large:
      return "too_large";
    case errc::resource_exhausted:
      return "resource_exhausted";
    case errc::unsupported:
      return "unsupported";
    case errc::unavailable:
      return "unavailable";
    case errc::deadline_exceeded:
      return "deadline_exceeded";
    case errc::cancelled:
      return "cancelled";
    case errc::data_loss:
      return "data_loss";
    case errc::internal:
      return "internal";
  }
  return "internal";
}

std::string to_string(const error& e) {
  std::string out(to_string(e.code()));
  out += ' ';
  out += e.reason();
  out += ": ";
  out += e.message();
  for (const auto& v : e.violations()) out += "; " + v.pointer + ": " + v.message;
  if (!e.detail().empty()) out += " (" + e.detail() + ")";
  return out;
}

void throw_exception_from_error(const error& e, const boost::source_location&) { throw bad_result(e); }

}  // namespace kubeopera::inline v1
