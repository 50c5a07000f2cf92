"""The RocketMQ version that a node behaves like: 4.9 (as 4.9.8) or 5.x (as 5.3.3). This module has only the version
facts that several kinds of nodes need."""

from enum import StrEnum

from ..codes import V4_9_8, V5_3_3


class Profile(StrEnum):
    """A RocketMQ version that nodes behave like. The values are the texts in scenarios, config files and histories."""

    V4_9 = "4.9"
    V5_X = "5.x"

    @property
    def version(self) -> int:
        """The MQVersion number that a node of this profile writes into its commands."""
        return V4_9_8 if self is Profile.V4_9 else V5_3_3

    @property
    def faq_url(self) -> str:
        """The address at the end of a NameServer's code 17 remark (`FAQUrl`)."""
        if self is Profile.V4_9:
            return "http://rocketmq.apache.org/docs/faq/"
        return "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
