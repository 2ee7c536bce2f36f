// Stands for another Boost that a program finds before the one that coaccel was built with.
#include_next <boost/version.hpp>
#undef BOOST_VERSION
#define BOOST_VERSION 999999
