// Parameters and rows: PostgreSQL's text forms.
#include "src/postgres/rows_impl.hpp"

#include <charconv>
#include <stdexcept>

namespace kubeopera::inline v1::postgres {

param::param(const std::vector<std::string>& array) {
  std::string out = "{";
  for (const auto& element : array) {
    if (out.size() > 1) out += ',';
    out += '"';
    for (char c : element) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  out += '}';
  text_ = std::move(out);
}

rows::rows() : impl_(std::make_unique<impl>()) {}
rows::rows(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
rows::rows(rows&&) noexcept = default;
rows& rows::operator=(rows&&) noexcept = default;
rows::~rows() = default;

int rows::impl::column(std::size_t row, std::string_view name) const {
  if (result && row < static_cast<std::size_t>(PQntuples(result.get()))) {
    int count = PQnfields(result.get());
    for (int i = 0; i < count; ++i)
      if (name == PQfname(result.get(), i)) return i;
    throw std::out_of_range("the statement has no column " + std::string(name));
  }
  throw std::out_of_range("the statement has no row " + std::to_string(row));
}

std::size_t rows::size() const noexcept {
  return impl_ && impl_->result ? static_cast<std::size_t>(PQntuples(impl_->result.get())) : 0;
}

std::size_t rows::affected() const noexcept {
  if (!impl_ || !impl_->result) return 0;
  std::string_view text = PQcmdTuples(impl_->result.get());
  std::size_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

bool rows::is_null(std::size_t row, std::string_view column) const {
  int c = impl_->column(row, column);
  return PQgetisnull(impl_->result.get(), static_cast<int>(row), c) != 0;
}

std::string_view rows::text(std::size_t row, std::string_view column) const {
  int c = impl_->column(row, column);
  auto r = static_cast<int>(row);
  return {PQgetvalue(impl_->result.get(), r, c), static_cast<std::size_t>(PQgetlength(impl_->result.get(), r, c))};
}

std::optional<std::string> rows::opt(std::size_t row, std::string_view column) const {
  if (is_null(row, column)) return std::nullopt;
  return str(row, column);
}

std::int64_t rows::integer(std::size_t row, std::string_view column) const {
  auto t = text(row, column);
  std::int64_t v = 0;
  auto [end, ec] = std::from_chars(t.data(), t.data() + t.size(), v);
  if (ec != std::errc() || end != t.data() + t.size())
    throw std::out_of_range("column " + std::string(column) + " is not an integer: " + std::string(t));
  return v;
}

bool rows::boolean(std::size_t row, std::string_view column) const {
  auto t = text(row, column);
  if (t == "t") return true;
  if (t == "f") return false;
  throw std::out_of_range("column " + std::string(column) + " is not a boolean: " + std::string(t));
}

system_time rows::time(std::size_t row, std::string_view column) const {
  // Sessions run with TimeZone=UTC and DateStyle=ISO: "2026-11-30 22:06:05.123456+00".
  std::string t = str(row, column);
  if (t.ends_with("+00")) t.replace(t.size() - 3, 3, "Z");
  auto parsed = parse_rfc3339(t);
  if (!parsed) throw std::out_of_range("column " + std::string(column) + " is not a time: " + t);
  return *parsed;
}

}  // namespace kubeopera::inline v1::postgres
