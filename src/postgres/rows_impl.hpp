// What rows hold: one libpq result.
#pragma once

#include <kubeopera/postgres/pool.hpp>

#include <libpq-fe.h>
#include <memory>

namespace kubeopera::inline v1::postgres {

struct result_deleter {
  void operator()(PGresult* r) const noexcept { PQclear(r); }
};
using result_ptr = std::unique_ptr<PGresult, result_deleter>;

struct rows::impl {
  result_ptr result;
  int column(std::size_t row, std::string_view name) const;
};

inline rows make_rows(result_ptr r) {
  auto p = std::make_unique<rows::impl>();
  p->result = std::move(r);
  return rows(std::move(p));
}

}  // namespace kubeopera::inline v1::postgres
