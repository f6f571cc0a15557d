// Other programs that read what was pushed: git fsck, libgit2, go-git. All of them must see the same objects.
#pragma once

#include <string>

namespace races {

/// Fails the test unless git finds nothing wrong in the repository, libgit2 and go-git can read every object that main reaches,
/// and the three count the same. go-git is asked where go and its module proxy are at hand; the test's output says when not.
void check_readers(const std::string& repository);

/// Why go-git is not asked here; "" where it is.
const std::string& why_no_gogit();

}  // namespace races
