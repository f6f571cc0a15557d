// Name lookup that can be given up: the system's resolver runs on threads of its own.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/http/address.hpp>

#include <string>
#include <vector>

namespace kubeopera::inline v1::http {

/// Every address of host, IP literals included. Errors: unavailable (DnsFailed), cancelled.
task<std::vector<ip_address>> resolve(std::string host);

}  // namespace kubeopera::inline v1::http
