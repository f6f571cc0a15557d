// result<T>: a value or a kubeopera::error. Outcomes that depend on input or on the outside come back as one.
#pragma once

#include <kubeopera/core/error.hpp>

#include <boost/system/result.hpp>

#include <stdexcept>

namespace kubeopera::inline v1 {

template <class T>
using result = boost::system::result<T, error>;  // note: error() returns a copy; name it before you iterate over its parts

/// What result<T>::value() throws when it holds an error: a broken promise of the caller.
class bad_result : public std::runtime_error {
 public:
  explicit bad_result(const error& e) : std::runtime_error(to_string(e)), error_(e) {}
  const error& cause() const noexcept { return error_; }

 private:
  error error_;
};

[[noreturn]] void throw_exception_from_error(const error& e, const boost::source_location& where);

}  // namespace kubeopera::inline v1

#define KUBEOPERA_CONCAT_(a, b) a##b
#define KUBEOPERA_CONCAT(a, b) KUBEOPERA_CONCAT_(a, b)
#define KUBEOPERA_TRY_(tmp, ret, decl, ...) \
  auto tmp = (__VA_ARGS__);                 \
  if (!tmp) ret std::move(tmp).error();     \
  decl = std::move(tmp).value()
#define KUBEOPERA_CHECK_(tmp, ret, ...) \
  if (auto tmp = (__VA_ARGS__); !tmp) ret std::move(tmp).error()

/// KUBEOPERA_TRY(auto x, f()): x is the value of f(), or this function returns f()'s error.
#define KUBEOPERA_TRY(decl, ...) KUBEOPERA_TRY_(KUBEOPERA_CONCAT(try_, __LINE__), return, decl, __VA_ARGS__)
/// KUBEOPERA_CHECK(f()): the same for a result whose value is not wanted.
#define KUBEOPERA_CHECK(...) KUBEOPERA_CHECK_(KUBEOPERA_CONCAT(try_, __LINE__), return, __VA_ARGS__)
/// The same two in coroutines: KUBEOPERA_CO_TRY(auto x, co_await f()).
#define KUBEOPERA_CO_TRY(decl, ...) KUBEOPERA_TRY_(KUBEOPERA_CONCAT(try_, __LINE__), co_return, decl, __VA_ARGS__)
#define KUBEOPERA_CO_CHECK(...) KUBEOPERA_CHECK_(KUBEOPERA_CONCAT(try_, __LINE__), co_return, __VA_ARGS__)
