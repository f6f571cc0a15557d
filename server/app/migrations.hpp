// Every migration of every schema.
#pragma once

#include <kubeopera/postgres/pool.hpp>

#include <vector>

namespace kubeopera::inline v1::app {

/// Of schema "kubeopera": the API's tables and its outbox.
std::vector<postgres::migration> api_schema_migrations();

}  // namespace kubeopera::inline v1::app
