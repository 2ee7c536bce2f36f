// Boost.JSON, for which there is no library to link. It is a source of its own, so that the linker leaves it out of a
// program that has compiled Boost.JSON itself.
#include <boost/json/src.hpp>
