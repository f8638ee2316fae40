"""Headers of users and access rules (ACL 2.0).

One entry a Java class, fields in the order in which the class writes them.
"""

from __future__ import annotations

from .field import STRING, HeaderField, may

AUTH_HEADERS: dict[str, tuple[HeaderField, ...]] = {
    "CreateUserRequestHeader": (may("username", STRING),),
    "UpdateUserRequestHeader": (may("username", STRING),),
    "DeleteUserRequestHeader": (may("username", STRING),),
    "GetUserRequestHeader": (may("username", STRING),),
    "ListUsersRequestHeader": (may("filter", STRING),),
    "CreateAclRequestHeader": (may("subject", STRING),),
    "UpdateAclRequestHeader": (may("subject", STRING),),
    "DeleteAclRequestHeader": (
        may("subject", STRING),
        may("policyType", STRING),
        may("resource", STRING),
    ),
    "GetAclRequestHeader": (may("subject", STRING),),
    "ListAclsRequestHeader": (
        may("subjectFilter", STRING),
        may("resourceFilter", STRING),
    ),
}
