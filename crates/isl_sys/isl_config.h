/* What isl's configure writes, for GCC and Clang on any POSIX system, with IMath and small integers. */
#define GCC_WARN_UNUSED_RESULT __attribute__((__warn_unused_result__))
#define HAVE___ATTRIBUTE__ 1
#define HAVE_DECL_FFS 1
#define HAVE_DECL___BUILTIN_FFS 1
#define HAVE_DECL__BITSCANFORWARD 0
#define HAVE_DECL_STRCASECMP 1
#define HAVE_DECL_STRNCASECMP 1
#define HAVE_DECL__STRICMP 0
#define HAVE_DECL__STRNICMP 0
#define HAVE_DECL_SNPRINTF 1
#define HAVE_DECL__SNPRINTF 0
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_STRINGS_H 1
#define HAVE_UNISTD_H 1
#define PACKAGE_STRING "isl 0.27"
#define USE_IMATH_FOR_MP
#define USE_SMALL_INT_OPT
#include <isl_config_post.h>
